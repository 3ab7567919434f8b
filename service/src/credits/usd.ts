/** One credit is one micro-USD. */
const creditsPerUsd = 1_000_000n

/** `12.5` US dollars in credits; undefined for anything else than an amount with at most six decimals. */
export function creditsOf(usd: string): bigint | undefined {
  const [, whole, decimals = ''] = /^(\d{1,9})(?:\.(\d{1,6}))?$/.exec(usd) ?? []
  if (whole === undefined) return undefined
  return BigInt(whole) * creditsPerUsd + BigInt(decimals.padEnd(6, '0'))
}

/** Credits as US dollars, exactly, with cents at least. */
export function usdOf(credits: bigint): string {
  const sign = credits < 0n ? '-' : ''
  const amount = credits < 0n ? -credits : credits
  const decimals = String(amount % creditsPerUsd)
    .padStart(6, '0')
    .replace(/0{1,4}$/, '')
  return `${sign}${amount / creditsPerUsd}.${decimals}`
}
