import { isIPv6 } from 'node:net'

import { findRunEnd, isAlphanumeric, isHex } from './characters.ts'
import type { Find } from './entity.ts'

const longestAddress = 39
const isAddressUnit = (unit: number) => isHex(unit) || unit === 58

/** IPv6 addresses. */
export const findIpv6: Find = (seen, at) => {
  const { text } = seen
  if (at > seen.from && text.charAt(at - 1) === ':') return null
  const { end: runEnd, isOpen } = findRunEnd(seen, at, isAddressUnit, longestAddress + 2)
  if (isOpen) return 'open'
  const isColonLast = text.charAt(runEnd - 1) === ':' && text.charAt(runEnd - 2) !== ':'
  const end = isColonLast ? runEnd - 1 : runEnd
  const address = text.slice(at, end)
  if (isAlphanumeric(text.charCodeAt(runEnd)) || !isAddress(address)) return null
  return { kind: 'IP', start: at, end }
}

/** Programs are full of what could be an address, as `1::2` and `Face::Bad`: short ones need a group of four and a digit. */
function isAddress(text: string): boolean {
  if (!text.includes(':') || !isIPv6(text)) return false
  const groups = text.split(':').filter((group) => group !== '')
  const hasDigit = /\d/.test(text)
  return hasDigit && (groups.length >= 3 || groups.some(({ length }) => length === 4))
}
