import type { CallerFormat } from './format.ts'

/**
 * The headers by which vendors' clients choose versions and beta features. Every format forwards all of them:
 * an upstream may be a gateway to another vendor's models.
 */
export const vendorHeaders = ['anthropic-version', 'anthropic-beta', 'openai-beta'] as const

/** The headers of a caller's request that an upstream of the same format gets. */
export function pickForwardedHeaders(
  { forwardedHeaders }: CallerFormat,
  headers: Readonly<Record<string, unknown>>,
): Record<string, string> {
  const sent = forwardedHeaders.flatMap((name) => {
    const value = headers[name]
    return typeof value === 'string' ? [[name, value] as const] : []
  })
  return Object.fromEntries(sent)
}
