/** A webhook of the operator or of an organization that decides about texts, as a call asks it. */
export type Guardrail = {
  /** As the organization's administrators or the operator call it; callers see it where it blocks. */
  readonly name: string
  /** Null: the operator's, from `MODERATION_FILE`, which applies to every organization. */
  readonly id: string | null
  /** A monitoring guardrail blocks and rewrites nothing; what it would have done is in the event. */
  readonly mode: 'monitoring' | 'enforcing'
  /** What happens to a text about which it does not answer as the contract says. */
  readonly onError: 'refuse' | 'allow'
  readonly deadlineMs: number
  readonly url: string
  /** `whsec_` and Base64, as for webhook sinks. Null: what it is sent is not signed. */
  readonly secret: string | null
}
