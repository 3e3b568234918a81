# Shared by the scripts that build guests, each of which is given a folder: `out`. `packages` in it is for
# what is downloaded and stays, `work` goes with the script.
out=$1
packages=$out/packages
work=$(mktemp -d "$out/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
export PATH=$PATH:/usr/sbin:/sbin

# Unpacks Debian packages without installing them: a kernel that is installed would rebuild this
# machine's boot files.
fetch() {
  [ ! -e "$packages/complete" ] || return 0
  mkdir -p "$packages"
  (cd "$packages" && apt-get -qq -o APT::Sandbox::User=root download "$@")
  local deb
  for deb in "$packages"/*.deb; do
    dpkg-deb -x "$deb" "$packages"
    rm "$deb"
  done
  touch "$packages/complete"
}

# unified_kernel KERNEL INITRD OS_RELEASE CMDLINE OUT: one EFI program of all of it; the sections are
# put behind those of the stub, each at an address of its own.
unified_kernel() {
  local stub=$packages/usr/lib/systemd/boot/efi/linuxx64.efi.stub
  local cmdline end section file address sections=()
  cmdline=$(mktemp)
  printf '%s' "$4" > "$cmdline"
  end=$(objdump -h "$stub" | awk 'NF == 7 {print $3, $4}' | while read -r size address; do
    echo $((0x$size + 0x$address))
  done | sort -n | tail -n 1)
  for section in "osrel:$3" "cmdline:$cmdline" "linux:$1" "initrd:$2"; do
    file=${section#*:}
    address=$(((end + 4095) / 4096 * 4096))
    sections+=(--add-section ".${section%%:*}=$file")
    sections+=(--change-section-vma ".${section%%:*}=$address")
    end=$((address + $(stat -Lc %s "$file")))
  done
  objcopy "${sections[@]}" "$stub" "$5"
  rm "$cmdline"
}

# boot_disk PROGRAM OUT: a file system that firmware boots the program from.
boot_disk() {
  local mebibytes=$(($(stat -c %s "$1") / 1048576 + 8))
  truncate -s "$((mebibytes < 40 ? 40 : mebibytes))M" "$2"
  local tools=$packages/usr/bin/mtools
  "$tools" -c mformat -i "$2" -F ::
  "$tools" -c mmd -i "$2" ::/EFI ::/EFI/BOOT
  "$tools" -c mcopy -i "$2" "$1" ::/EFI/BOOT/BOOTX64.EFI
}
