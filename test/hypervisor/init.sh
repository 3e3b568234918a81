#!/bin/bash
# Process 1 of a hypervisor host: mounts what it has of its own, then starts and stops its services as
# its standard input says, one word a line, and answers `done WORD` or `failed WORD`. When its input
# ends, because whoever made it is gone, so does it, and the kernel ends everything in here with it.
#
# HV: folder with its files; HV_POOL_BYTES: size of the pool's file system, 0 for a plain folder;
# HV_ADDRESS: its address.
set -u
export LIBVIRT_DEFAULT_URI=qemu:///system

mounts() {
  set -e
  mount --make-rprivate /
  # One of this network namespace, and without control groups, which libvirt cannot use in here.
  umount -l /sys
  mount -t sysfs sysfs /sys
  mount -t tmpfs -o mode=755,size=64m tmpfs /run
  # A /dev of its own, without kvm: one that is there and cannot be used makes libvirt probe QEMU for
  # 19 s whenever it starts a domain.
  mkdir -p "$HV/dev"
  mount -t tmpfs -o mode=755,size=1m tmpfs "$HV/dev"
  local dev=$HV/dev
  mkdir -p "$dev/net" "$dev/pts" "$dev/shm"
  mknod -m 666 "$dev/null" c 1 3
  mknod -m 666 "$dev/zero" c 1 5
  mknod -m 666 "$dev/full" c 1 7
  mknod -m 666 "$dev/random" c 1 8
  mknod -m 666 "$dev/urandom" c 1 9
  mknod -m 666 "$dev/tty" c 5 0
  mknod -m 600 "$dev/net/tun" c 10 200
  ln -s pts/ptmx "$dev/ptmx"
  ln -s /proc/self/fd "$dev/fd"
  ln -s fd/0 "$dev/stdin"
  ln -s fd/1 "$dev/stdout"
  ln -s fd/2 "$dev/stderr"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$dev/pts"
  mount -t tmpfs -o mode=1777 tmpfs "$dev/shm"
  # What stays mounted below the old /dev keeps QEMU from making a mount namespace for itself.
  awk '$2 ~ "^/dev/" {print $2}' /proc/mounts | tac | while read -r old; do
    umount -l "$old" 2>/dev/null || true
  done
  mount --move "$dev" /dev
  mkdir -p /run/sshd /run/lock /run/libvirt
  local folder
  for folder in etc/libvirt var/lib/libvirt var/log/libvirt var/cache/libvirt etc/ssh; do
    mkdir -p "/$folder"
    mount --bind "$HV/$folder" "/$folder"
  done
  local file
  for file in passwd group shadow hosts resolv.conf; do
    mount --bind "$HV/etc/$file" "/etc/$file"
  done
  if [ "$HV_POOL_BYTES" != 0 ]; then
    mount -t tmpfs -o "mode=755,size=$HV_POOL_BYTES" tmpfs /var/lib/libvirt/images
  fi
  hostname "$(basename "$HV")"
}

network() {
  set -e
  ip link set lo up
  ip addr add "$HV_ADDRESS/30" dev eth0
  ip link set eth0 up
  # No default route: nothing leaves.
  echo 1 > /proc/sys/net/ipv4/ip_forward
}

# Sends a signal to all processes of a name; everything in here is the host's own.
signal_all() {
  local process
  for process in /proc/[0-9]*; do
    [ "$(cat "$process/comm" 2>/dev/null)" = "$2" ] && kill "-$1" "${process#/proc/}" 2>/dev/null
  done
  return 0
}

wait_for() {
  local i
  for i in $(seq 200); do
    "$@" >/dev/null 2>&1 && return 0
    sleep 0.05
  done
  return 1
}

start_sshd() {
  /usr/sbin/sshd -D -e -f /etc/ssh/sshd_config 2>>/var/log/libvirt/sshd.log &
  wait_for bash -c "exec 3<>/dev/tcp/$HV_ADDRESS/22"
}

start_libvirtd() {
  /usr/sbin/libvirtd >>/var/log/libvirt/libvirtd.log 2>&1 &
  wait_for virsh -r -q list
}

stop_libvirtd() {
  signal_all "$1" libvirtd
  local i
  for i in $(seq 200); do
    grep -qsx libvirtd /proc/[0-9]*/comm || return 0
    sleep 0.05
  done
  return 1
}

first_start() {
  /usr/sbin/virtlogd >>/var/log/libvirt/virtlogd.log 2>&1 &
  start_libvirtd || return 1
  set -e
  virsh -q pool-define-as images dir --target /var/lib/libvirt/images
  virsh -q pool-start images
  virsh -q pool-autostart images
  virsh -q net-define "$HV/network.xml"
  virsh -q net-start vmnet
  virsh -q net-autostart vmnet
}

# Runs what a word says; in a shell of its own, so that `set -e` ends the word and not the host.
word() {
  case $1 in
    network) network ;;
    start) first_start && start_sshd ;;
    kill-sshd) signal_all KILL sshd ;;
    freeze-sshd) signal_all STOP sshd ;;
    thaw-sshd) signal_all CONT sshd ;;
    start-sshd) start_sshd ;;
    stop-libvirtd) stop_libvirtd TERM ;;
    kill-libvirtd) stop_libvirtd KILL ;;
    freeze-libvirtd) signal_all STOP libvirtd ;;
    thaw-libvirtd) signal_all CONT libvirtd ;;
    start-libvirtd) start_libvirtd ;;
    *) return 1 ;;
  esac
}

exec 2>>"$HV/init.log"
(mounts) || { echo 'failed mounts'; exit 1; }
echo 'done mounts'
while read -r line; do
  if (word "$line") </dev/null >>"$HV/init.log"; then echo "done $line"; else echo "failed $line"; fi
done
# Nobody is left to clear up: everything in this namespace ends, and then its files go.
kill -KILL -1 2>/dev/null
case $HV in */hypervisor-*) rm -rf --one-file-system "$HV" ;; esac
