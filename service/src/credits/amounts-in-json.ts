/** A whole number that JSON can carry exactly; anything else would be a wrong answer about money. */
export function toCount(amount: bigint | string): number {
  const count = Number(amount)
  if (Number.isSafeInteger(count)) return count
  throw new RangeError('an amount is too large for JSON')
}

const creditsPerUsd = 1_000_000

/** Credits in US dollars: exact to its six decimals. */
export const toUsd = (credits: bigint | string) => toCount(credits) / creditsPerUsd

/** Pico-USD per token as US dollars per million tokens, without zeros at the end: the inverse of readPrice. */
export function toUsdPerMillion(picoUsd: number): string {
  const digits = BigInt(picoUsd).toString().padStart(7, '0')
  return `${digits.slice(0, -6)}.${digits.slice(-6)}`.replace(/\.?0+$/, '')
}
