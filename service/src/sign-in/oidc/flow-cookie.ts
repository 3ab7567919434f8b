import { z } from 'zod'

import type { SecretBox } from '#platform/secrets.ts'

/** A sign-in that a browser has started, and that the provider has not yet answered. */
const Flow = z.object({
  provider: z.string(),
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  /** A path of this gateway. */
  returnTo: z.string(),
  /** Where several organizations are possible, the one that the person has chosen. */
  organizationId: z.string().nullable(),
  /** The hash of the invitation that the person has opened. */
  invitation: z.string().nullable().default(null),
  startedAtMs: z.number(),
})
export type Flow = z.infer<typeof Flow>

export const flowMaxMs = 10 * 60_000
const context = 'sign-in-flow'

/** What the cookie of the flow holds: sealed, because the verifier and the nonce prove that this browser has started it. */
export const sealFlow = (flow: Flow, box: SecretBox): string =>
  box.seal(Buffer.from(JSON.stringify(flow)), context).toString('base64url')

/** Undefined for a cookie that is not ours, or of a flow that has lasted too long. */
export function openFlow(cookie: string, box: SecretBox, now: Date): Flow | undefined {
  try {
    const text = box.open(Buffer.from(cookie, 'base64url'), context).toString()
    const flow = Flow.parse(JSON.parse(text))
    const ageMs = now.getTime() - flow.startedAtMs
    // Another process may have started it, whose clock is a little ahead.
    return ageMs < flowMaxMs && ageMs > -flowMaxMs ? flow : undefined
  } catch {
    return undefined
  }
}
