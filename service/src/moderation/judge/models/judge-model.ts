import type { JudgedContent, JudgedRule } from '#moderation/judge/judge.ts'

/** One way to ask a model about rules. */
export type JudgeModel = {
  /** Part of the key of cached verdicts. It stands for the exact wording of the question. */
  readonly promptVersion: string
  /** 1 for models that are made to read one rule at a time. */
  readonly rulesPerCall: number
  /** The model answers in this process, without a server. */
  readonly isLocal?: boolean
  /** How much the content matches each rule, 0 to 1, in the order of the rules; throws a JudgeFailure. */
  ask(
    rules: readonly JudgedRule[],
    content: JudgedContent,
    signal: AbortSignal,
  ): Promise<readonly number[]>
}

/** The reply, whatever its status. */
export type PostedReply = { readonly status: number; readonly body: string }

/**
 * Sends a body to the judge's chat completions. It rejects if no whole reply comes; it ends its request when the signal
 * aborts, and bounds the size of a reply.
 */
type PostJudge = (body: object, signal: AbortSignal) => Promise<PostedReply>

export type JudgeModelOptions = {
  /** The model's name at its server. */
  readonly model: string
  readonly post: PostJudge
  /** 128 random bits in hexadecimal. */
  createNonce(): string
}
