#!/bin/bash
# Builds the mini guest: Debian's cloud kernel and an initramfs with busybox, this machine's Squid and
# `init`, as one EFI program on a FAT disk. About 10 s, 26 MB.
#
# build.sh FOLDER   writes FOLDER/mini.qcow2; what it downloads stays in FOLDER/packages
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../lib.sh"

kernel=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ {print $2; exit}')
fetch "$kernel" busybox-static systemd-boot-efi mtools
busybox=$(find "$packages" -path '*bin/busybox' -type f | head -n 1)
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

cmdline='console=ttyS0,115200 loglevel=4 mitigations=off net.ifnames=0 panic=5'
unified_kernel "$kernel" "$work/initrd" /etc/os-release "$cmdline" "$work/BOOTX64.EFI"
# The disk is one file system, without a partition table: firmware takes that, too.
boot_disk "$work/BOOTX64.EFI" "$work/disk"
qemu-img convert -O qcow2 "$work/disk" "$work/mini.qcow2"
# Made visible only when it is complete.
mv "$work/mini.qcow2" "$out/mini.qcow2"
