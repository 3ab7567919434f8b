/** A credit is a millionth of a dollar. */
const creditsPerUsd = 1_000_000

export const toUsd = (credits: number): number => credits / creditsPerUsd
export const toCredits = (usd: number): number => Math.round(usd * creditsPerUsd)

/** An amount as the reader's language writes it. Small amounts keep their digits. */
export const writeUsd = (credits: number, language?: string): string =>
  new Intl.NumberFormat(language, {
    style: 'currency',
    currency: 'USD',
    maximumFractionDigits: credits !== 0 && credits < creditsPerUsd ? 6 : 2,
  }).format(toUsd(credits))

export const writeNumber = (value: number): string => value.toLocaleString()
