const header = 'anthropic-beta'

type Headers = Readonly<Record<string, string>>

/** The betas of a request: a list with commas, in one header. */
export const readBetas = (headers: Headers): string[] =>
  (headers[header] ?? '')
    .split(',')
    .map((beta) => beta.trim())
    .filter((beta) => beta !== '')

/** The headers with these betas instead. */
export function withBetas(headers: Headers, betas: readonly string[]): Record<string, string> {
  const { [header]: _, ...others } = headers
  return betas.length === 0 ? others : { ...others, [header]: betas.join(',') }
}
