/**
 * Why a guardrail has not decided about a text, also as a label of metrics:
 * - `misconfigured`: it refuses this gateway with 400, 401 or 403, or its address may not be called
 * - `unreachable`: no connection, or one that broke
 * - `late`: it has not answered within its deadline
 * - `status`: it has answered with any other status than 200
 * - `too_large`: its answer is longer than is read
 * - `malformed`: its answer is not what the contract says
 * - `unwritable`: what it wants rewritten cannot be: it has left already, is sealed, or would no longer be JSON
 * - `paused`: it is not asked for a moment, because it has failed too often
 * - `overloaded`: too many questions to it wait in this process
 */
export type GuardrailProblem =
  | 'misconfigured'
  | 'unreachable'
  | 'late'
  | 'status'
  | 'too_large'
  | 'malformed'
  | 'unwritable'
  | 'paused'
  | 'overloaded'

type FailureOptions = {
  cause?: unknown
  isOfOrganization?: boolean
}

/** A guardrail has not decided. The message is one sentence without addresses, secrets, or any text of the call. */
export class GuardrailFailure extends Error {
  override readonly name = 'GuardrailFailure'
  readonly problem: GuardrailProblem
  /** Of a guardrail that the organization of the caller runs itself: it can bring any failure about. */
  readonly isOfOrganization: boolean

  constructor(problem: GuardrailProblem, message: string, options: FailureOptions = {}) {
    const { isOfOrganization = false, cause } = options
    super(message, { cause })
    this.problem = problem
    this.isOfOrganization = isOfOrganization
  }

  /** The same failure of a guardrail of an organization. */
  asOfOrganization(): GuardrailFailure {
    const { problem, message, cause } = this
    return new GuardrailFailure(problem, message, { cause, isOfOrganization: true })
  }

  /** Trying again does not help, and no text passes because of it, whatever the guardrail's `onError` says. */
  get isMisconfigured(): boolean {
    const { problem, cause } = this
    const isByCause = cause instanceof GuardrailFailure && cause.isMisconfigured
    return problem === 'misconfigured' || isByCause
  }
}
