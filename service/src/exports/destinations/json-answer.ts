type Members = Readonly<Record<string, unknown>>

/** The body of an answer as JSON; undefined if it is none. */
export function readJsonAnswer(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    return undefined
  }
}

/** The value as an object; undefined if it is none. */
export const membersOf = (value: unknown): Members | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Members)
    : undefined
