#!/bin/bash
# Builds a Debian guest with cloud-init, Squid and the guest agent: what a cloud image is, less what
# makes it slow under emulation. About 4 minutes, 170 MB.
#
# build.sh FOLDER   writes FOLDER/debian.qcow2; what it downloads stays in FOLDER/packages
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../lib.sh"

fetch systemd-boot-efi mtools fdisk debootstrap
# The mirror that this machine has.
mirror=$(apt-cache policy base-files | awk '$2 ~ /^https?:/ && $3 ~ /^bookworm\/main/ {print $2; exit}')
# python3-cffi-backend by name: debootstrap knows no virtual packages.
include=linux-image-cloud-amd64,initramfs-tools,systemd-sysv,dbus,udev,iproute2,netplan.io
include=$include,cloud-init,python3-cffi-backend,squid,qemu-guest-agent,zstd
root=$work/root
export DEBOOTSTRAP_DIR=$packages/usr/share/debootstrap
"$packages/usr/sbin/debootstrap" --variant=minbase --include="$include" bookworm "$root" "$mirror"

echo 'LABEL=root / ext4 defaults,noatime 0 1' > "$root/etc/fstab"
: > "$root/etc/machine-id"
rm -f "$root/var/lib/dbus/machine-id"
# The first RAM disk: what a guest with virtio devices needs, and no more.
printf 'MODULES=list\nCOMPRESS=zstd\nFSTYPE=ext4\n' > "$root/etc/initramfs-tools/conf.d/guest.conf"
printf 'virtio_pci\nvirtio_blk\next4\n' > "$root/etc/initramfs-tools/modules"
chroot "$root" update-initramfs -u -k all
cat > "$root/etc/cloud/cloud.cfg.d/90_guest.cfg" <<'CFG'
datasource_list: [ NoCloud, None ]
cloud_init_modules: [ write-files, set_hostname ]
cloud_config_modules: [ runcmd ]
cloud_final_modules: [ scripts-user, final-message ]
CFG
chroot "$root" systemctl enable systemd-networkd squid
# Squid waits for its configuration.
mkdir -p "$root/etc/systemd/system/squid.service.d"
printf '[Unit]\nAfter=cloud-init.service\n' > "$root/etc/systemd/system/squid.service.d/seed.conf"
for unit in apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer e2scrub_reap.service \
  fstrim.timer dpkg-db-backup.timer logrotate.timer cloud-init-hotplugd.socket; do
  ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,info,locale}

kernel=$(find "$root/boot" -name 'vmlinuz-*')
cmdline='root=LABEL=root ro console=ttyS0,115200 loglevel=4 systemd.show_status=0 mitigations=off net.ifnames=0'
unified_kernel "$kernel" "${kernel/vmlinuz-/initrd.img-}" "$root/etc/os-release" "$cmdline" \
  "$work/BOOTX64.EFI"
boot_disk "$work/BOOTX64.EFI" "$work/esp"
truncate -s 1200M "$work/ext4"
mkfs.ext4 -q -F -L root -E lazy_itable_init=0,lazy_journal_init=0 -m 0 -d "$root" "$work/ext4"
esp=$(($(stat -c %s "$work/esp") / 1048576))
truncate -s "$((1 + esp + 1200 + 1))M" "$work/disk"
printf 'label: gpt\nstart=1MiB, size=%dMiB, type=uefi\nstart=%dMiB, size=1200MiB, type=linux\n' \
  "$esp" "$((1 + esp))" | "$packages/sbin/sfdisk" -q "$work/disk"
dd if="$work/esp" of="$work/disk" bs=1M seek=1 conv=notrunc,sparse status=none
dd if="$work/ext4" of="$work/disk" bs=1M seek="$((1 + esp))" conv=notrunc,sparse status=none
qemu-img convert -c -o compression_type=zstd -O qcow2 "$work/disk" "$work/debian.qcow2"
# Made visible only when it is complete.
mv "$work/debian.qcow2" "$out/debian.qcow2"
