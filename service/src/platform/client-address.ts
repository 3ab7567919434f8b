import { isIPv4, isIPv6, SocketAddress } from 'node:net'

/**
 * The part of an address that stands for one caller: a whole IPv4 address, or the /64 of an IPv6 one. Mapped
 * IPv4 (`::ffff:a.b.c.d`) is unwrapped first, because all IPv4 callers would share one prefix otherwise.
 */
export function addressPrefix(given: string): string {
  if (isIPv4(given)) return given
  // As Node reports IPv4 callers of a listener for both families.
  if (given.startsWith('::ffff:') && isIPv4(given.slice(7))) return given.slice(7)
  const address = SocketAddress.parse(`[${given.split('%', 1)[0]}]:0`)?.address ?? given
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)
  if (mapped?.[1]) return mapped[1]
  if (!isIPv6(address)) return address
  return `${groups(address).slice(0, 4).join(':')}::/64`
}

/** The eight groups of an IPv6 address, without leading zeros. */
function groups(address: string): string[] {
  const [head = '', tail] = (address.split('%')[0] ?? '').toLowerCase().split('::')
  const left = head === '' ? [] : head.split(':')
  const right = !tail ? [] : tail.split(':')
  const missing = tail === undefined ? 0 : 8 - left.length - right.length
  return [...left, ...Array<string>(Math.max(missing, 0)).fill('0'), ...right].map((group) =>
    group.replace(/^0+(?=.)/, ''),
  )
}
