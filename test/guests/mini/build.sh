#!/bin/bash
# Builds the mini guest: Debian's cloud kernel and an initramfs with busybox, this machine's Squid and
# `init`, as one EFI program on a FAT disk. About 10 s, 26 MB.
#
# build.sh FOLDER   writes FOLDER/mini.qcow2; what it downloads stays in FOLDER/packages
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$1
packages=$out/packages
work=$(mktemp -d "$out/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
export PATH=$PATH:/usr/sbin:/sbin

# Unpacks Debian packages without installing them: a kernel that is installed would rebuild this
# machine's boot files.
fetch() {
  mkdir -p "$packages"
  (cd "$packages" && apt-get -qq -o APT::Sandbox::User=root download "$@")
  local deb
  for deb in "$packages"/*.deb; do
    dpkg-deb -x "$deb" "$packages"
    rm "$deb"
  done
}

if [ ! -e "$packages/complete" ]; then
  kernel=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ {print $2; exit}')
  fetch "$kernel" busybox-static systemd-boot-efi mtools
  touch "$packages/complete"
fi
busybox=$(find "$packages" -path '*bin/busybox' -type f | head -n 1)
stub=$packages/usr/lib/systemd/boot/efi/linuxx64.efi.stub
kernel=$(find "$packages/boot" -name 'vmlinuz-*' | head -n 1)
modules=$packages/lib/modules/${kernel##*/vmlinuz-}/kernel

root=$work/root
mkdir -p "$root"/{bin,lib/modules,etc/squid,usr/sbin,usr/lib/squid,var/log/squid,var/spool/squid}
cp "$busybox" "$root/bin/busybox"
ln -s busybox "$root/bin/sh"
install -m 755 "$here/init" "$root/init"
install -m 755 "$here/udhcpc.sh" "$root/etc/udhcpc.sh"

squid=$(command -v squid)
cp -L "$squid" "$root/usr/sbin/squid"
ldd "$squid" | grep -oE '/[^ ]+' | while read -r library; do
  mkdir -p "$root$(dirname "$library")"
  cp -L "$library" "$root$library"
done
cp -L /usr/lib/squid/{unlinkd,log_file_daemon} "$root/usr/lib/squid/"
mkdir -p "$root/usr/share/squid/errors"
cp -rL /usr/share/squid/icons /usr/share/squid/mime.conf "$root/usr/share/squid/"
cp -L /etc/squid/errorpage.css "$root/etc/squid/"
# Where the machine has no pages of errors in its own language, these are what Squid asks for.
for pages in /usr/share/squid-langpack/templates /usr/share/squid/errors/templates; do
  [ -d "$pages" ] && cp -aL "$pages" "$root/usr/share/squid/errors/" && break
done
printf 'root:x:0:0::/root:/bin/sh\nproxy:x:13:13::/bin:/bin/false\n' > "$root/etc/passwd"
printf 'root:x:0:\nproxy:x:13:\n' > "$root/etc/group"
printf 'hosts: files dns\n' > "$root/etc/nsswitch.conf"
chown -R 13:13 "$root/var/log/squid" "$root/var/spool/squid"

for module in drivers/virtio/virtio drivers/virtio/virtio_ring drivers/virtio/virtio_pci_modern_dev \
  drivers/virtio/virtio_pci_legacy_dev drivers/virtio/virtio_pci drivers/block/virtio_blk \
  net/core/failover drivers/net/net_failover drivers/net/virtio_net drivers/char/hw_random/virtio-rng \
  drivers/cdrom/cdrom fs/isofs/isofs; do
  # Some of them are a part of the kernel itself.
  [ -e "$modules/$module.ko" ] || continue
  cp "$modules/$module.ko" "$root/lib/modules/"
  echo "${module##*/}"
done > "$root/lib/modules/list"
(cd "$root" && find . | "$busybox" cpio -o -H newc 2>/dev/null | zstd -q -12 > "$work/initrd")

# A unified kernel image: sections of the stub, one after the other at addresses of their own.
printf 'console=ttyS0,115200 loglevel=4 mitigations=off net.ifnames=0 panic=5' > "$work/cmdline"
end=$(objdump -h "$stub" | awk 'NF == 7 {print $3, $4}' | while read -r size address; do
  echo $((0x$size + 0x$address))
done | sort -n | tail -n 1)
sections=()
for section in osrel:/etc/os-release "cmdline:$work/cmdline" "linux:$kernel" "initrd:$work/initrd"; do
  file=${section#*:}
  address=$(((end + 4095) / 4096 * 4096))
  sections+=(--add-section ".${section%%:*}=$file" --change-section-vma ".${section%%:*}=$address")
  end=$((address + $(stat -Lc %s "$file")))
done
objcopy "${sections[@]}" "$stub" "$work/BOOTX64.EFI"

# A disk that is one file system, without a partition table: firmware takes that, too.
mebibytes=$(($(stat -c %s "$work/BOOTX64.EFI") / 1048576 + 8))
truncate -s "$((mebibytes < 40 ? 40 : mebibytes))M" "$work/disk"
tool() { "$packages/usr/bin/mtools" -c "$@"; }
tool mformat -i "$work/disk" -F ::
tool mmd -i "$work/disk" ::/EFI ::/EFI/BOOT
tool mcopy -i "$work/disk" "$work/BOOTX64.EFI" ::/EFI/BOOT/BOOTX64.EFI
qemu-img convert -O qcow2 "$work/disk" "$work/mini.qcow2"
# Made visible only when it is complete.
mv "$work/mini.qcow2" "$out/mini.qcow2"
