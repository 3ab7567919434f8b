import type { Target } from './targets/target.ts'

/** The headers of a request, one set for each key of the target. */
export function headerSets({ headers, keys }: Target): Record<string, string>[] {
  return (keys.length > 0 ? keys : ['no-key']).map((key) => ({
    'content-type': 'application/json',
    authorization: `Bearer ${key}`,
    ...headers,
  }))
}
