import { BlockList, isIP } from 'node:net'

/**
 * IANA's IPv4 special-purpose registry, multicast, and the one metadata address outside of it. Entries that
 * IANA calls globally reachable (AS112, AMT) are refused too: no HTTPS service has such an address.
 */
const specialIpv4 = [
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private use
  '100.64.0.0/10', // shared by carriers; Alibaba's metadata is 100.100.100.200
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // Azure's platform address
  '169.254.0.0/16', // link-local; metadata of most clouds
  '172.16.0.0/12', // private use
  '192.0.0.0/24', // protocol assignments; Oracle's metadata is 192.0.0.192
  '192.0.2.0/24', // documentation
  '192.31.196.0/24', // AS112
  '192.52.193.0/24', // AMT
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private use
  '192.175.48.0/24', // AS112
  '198.18.0.0/15', // benchmarking
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
]

/**
 * IANA assigns global unicast addresses from this block only. What lies outside of it needs no list:
 * loopback, IPv4-compatible and mapped, NAT64, discard-only, segment routing, unique local with the
 * metadata of AWS and Google, link-local, site-local, multicast.
 */
const globalIpv6 = ['2000::/3']

const specialIpv6 = [
  '2001::/23', // protocol assignments: Teredo, benchmarking, AMT, ORCHIDv2, drone ids
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4, embeds an IPv4 address
  '2620:4f:8000::/48', // AS112
  '3ffe::/16', // the former 6bone
  '3fff::/20', // documentation
]

// One list per family: in Node an IPv6 rule for ::ffff:0:0/96 would match every IPv4 address.
const refusedIpv4 = subnets(specialIpv4, 'ipv4')
const allowedIpv6 = subnets(globalIpv6, 'ipv6')
const refusedIpv6 = subnets(specialIpv6, 'ipv6')

/** Whether an address belongs to the public internet; false for text that is not an address. */
export function isPublicAddress(ip: string): boolean {
  if (ip.includes('%')) return false // a zone names one of our own interfaces
  switch (isIP(ip)) {
    case 4:
      return !refusedIpv4.check(ip, 'ipv4')
    case 6:
      return allowedIpv6.check(ip, 'ipv6') && !refusedIpv6.check(ip, 'ipv6') && !isIsatap(ip)
    default:
      return false
  }
}

function subnets(entries: readonly string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const entry of entries) {
    const [network = '', prefix] = entry.split('/')
    list.addSubnet(network, Number(prefix), family)
  }
  return list
}

/** ISATAP hides an IPv4 address behind 0:5efe or 200:5efe under any prefix (RFC 5214, section 6.1). */
function isIsatap(ip: string): boolean {
  const [, , , , fifth, sixth] = splitGroups(ip)
  return sixth === '5efe' && (fifth === '0' || fifth === '200')
}

function splitGroups(ip: string): string[] {
  const shortest = new URL(`http://[${ip}]`).hostname.slice(1, -1)
  const [head = [], tail = []] = shortest.split('::').map((half) => half.split(':').filter(Boolean))
  const left = 8 - head.length - tail.length
  return [...head, ...Array<string>(left).fill('0'), ...tail]
}
