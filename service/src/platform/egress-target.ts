import { isIP } from 'node:net'

/** Where a call may go. */
export type TargetRules = {
  /** The operator's `host:port` entries: only these may be http, an IP address or private. */
  privateTargets: readonly string[]
  /** The allowed ports of all other targets; only 443 by default. */
  ports?: readonly number[] | undefined
  /** The name of the operator's list, for the refusal of a port. */
  setting?: string
}

/** A call that was refused before it was made. `reason` is safe to show: it reveals nothing about our network. */
export class EgressBlocked extends Error {
  readonly code = 'EGRESS_BLOCKED'
  readonly reason: string

  constructor(reason: string) {
    super(reason)
    this.name = 'EgressBlocked'
    this.reason = reason
  }
}

const addressLimit = 2048
const nameLimit = 253

/** Special-use names (RFC 6761, 6762, 7686, 8375, 9476) and common names of private networks. */
const privateDomains = new Set(
  (
    'alt arpa example internal invalid local localhost onion test ' +
    'corp home intranet lan localdomain private svc'
  ).split(' '),
)

// The URL parser silently drops or replaces these, so the checked URL would differ from the given text.
const rewrittenByParser = /[\p{Cc}\s\\]/u
const schemeAndHost = /^https?:\/\/[^/?#]/i
const userInfo = /^https?:\/\/[^/?#]*@/i
const dnsName = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,126}[a-z0-9-]{2,63}$/
const hostAndPort = /^[^/?#@*\\\s]+:\d{1,5}$/

/**
 * Parses an address and refuses every target that tenants may not reach. The rules apply to the parsed URL,
 * in which 0x7f.1, 2130706433 and ①②⑦.0.0.1 have all become 127.0.0.1.
 */
export function checkTarget(address: string, rules: TargetRules): URL {
  const url = readAddress(address)
  url.hash = '' // never sent; without it equal targets are equal strings
  if (isPrivateTarget(url, rules.privateTargets)) return url

  if (url.protocol !== 'https:') throw new EgressBlocked('The address must start with https://.')
  checkName(url.hostname)
  const ports = rules.ports ?? [443]
  if (!ports.includes(portOf(url))) {
    const remedy = rules.setting ? `; the operator can allow another one in ${rules.setting}` : ''
    throw new EgressBlocked(`The port is not one of ${ports.join(', ')}${remedy}.`)
  }
  return url
}

/** The HTTP client sets framing and routing itself; a caller who sets them could smuggle a second request. */
const clientHeaders = new Set(
  (
    'connection content-length expect host keep-alive proxy-authenticate proxy-authorization ' +
    'proxy-connection te trailer transfer-encoding upgrade'
  ).split(' '),
)
const headerName = /^[\w!#$%&'*+.^`|~-]{1,256}$/
// A character above U+00FF would be cut to one byte: U+010D would become a carriage return.
const headerValue = /^[\t\u0020-\u007e\u0080-\u00ff]*$/

/** Refuses headers that would change where a request goes or where it ends. */
export function checkHeaders(headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) {
    if (!headerName.test(name)) throw new EgressBlocked('A header name is not valid.')
    if (clientHeaders.has(name.toLowerCase())) {
      throw new EgressBlocked(`The header ${name.toLowerCase()} may not be set.`)
    }
    if (!headerValue.test(value)) {
      throw new EgressBlocked('A header value holds a character that is not allowed.')
    }
  }
}

/** Whether the operator listed exactly this host and port. */
export function isPrivateTarget(url: URL, privateTargets: readonly string[]): boolean {
  const wanted = nameTarget(url)
  return privateTargets.some((entry) => readPrivateTarget(entry) === wanted)
}

/** One entry of the operator's list in the URL parser's spelling; throws for a malformed one. */
export function readPrivateTarget(entry: string): string {
  const url = hostAndPort.test(entry) ? URL.parse(`http://${entry}`) : null
  if (!url) throw new Error(`Bad private target "${entry}": write host:port.`)
  return nameTarget(url)
}

function readAddress(address: string): URL {
  if (address.length > addressLimit) {
    throw new EgressBlocked(`The address is longer than ${addressLimit} characters.`)
  }
  if (rewrittenByParser.test(address)) {
    throw new EgressBlocked('The address holds a space, a backslash or a control character.')
  }
  if (!schemeAndHost.test(address)) {
    throw new EgressBlocked('The address must start with https:// and a host name.')
  }
  if (userInfo.test(address)) {
    throw new EgressBlocked('The address may not hold a user name or a password.')
  }
  const url = URL.parse(address)
  if (!url) throw new EgressBlocked('The address is not a valid URL.')
  return url
}

/** Whether a name belongs to private networks by its last label. */
export function isPrivateName(hostname: string): boolean {
  return privateDomains.has(hostname.split('.').findLast((label) => label !== '') ?? '')
}

function checkName(hostname: string): void {
  if (isIP(hostname) !== 0 || hostname.startsWith('[')) {
    throw new EgressBlocked('The address must hold a host name, not an IP address.')
  }
  if (isPrivateName(hostname)) {
    throw new EgressBlocked('The host name is reserved for private networks.')
  }
  if (hostname.length > nameLimit || !dnsName.test(hostname)) {
    throw new EgressBlocked('The address must hold a full host name such as sink.example.com.')
  }
}

const portOf = (url: URL) => Number(url.port || (url.protocol === 'https:' ? 443 : 80))
const nameTarget = (url: URL) => `${url.hostname}:${portOf(url)}`
