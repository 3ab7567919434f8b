// Units of money:
//
// - A credit is a micro-USD: one US dollar is a million credits. Amounts in credits are bigint.
// - Prices are in pico-USD per token, so that the price of a cheap model is a whole number too (price.ts).
// - On the wire, credits are numbers and US dollars are numbers with at most six decimals.

const creditsPerUsd = 1_000_000
const bigCreditsPerUsd = BigInt(creditsPerUsd)
export const creditsPerUsCent = creditsPerUsd / 100

/** Reads an amount in US dollars, as `12.5`, with at most six decimals. Undefined if it is none. */
export function parseUsd(usd: string): bigint | undefined {
  const [, whole, decimals = ''] = /^(\d{1,9})(?:\.(\d{1,6}))?$/.exec(usd) ?? []
  if (whole === undefined) return undefined
  return BigInt(whole) * bigCreditsPerUsd + BigInt(decimals.padEnd(6, '0'))
}

/** Credits as US dollars for people: exact, with at least two decimals. */
export function formatUsd(credits: bigint): string {
  const sign = credits < 0n ? '-' : ''
  const amount = credits < 0n ? -credits : credits
  const decimals = String(amount % bigCreditsPerUsd)
    .padStart(6, '0')
    .replace(/0{1,4}$/, '')
  return `${sign}${amount / bigCreditsPerUsd}.${decimals}`
}

/** A bigint of the database as a JSON number. Throws where JSON would round it. */
export function toSafeNumber(amount: bigint | string): number {
  const number = Number(amount)
  if (Number.isSafeInteger(number)) return number
  throw new RangeError('an amount is too large for JSON')
}

/** Credits as US dollars for JSON: exact to six decimals. */
export const toUsd = (credits: bigint | string) => toSafeNumber(credits) / creditsPerUsd
