import type { DraftName } from './organization-rules.ts'
import type { ProcessState } from './process-states.ts'
import type { Setting } from './setting.ts'

/** What is true of a credential, or of the project that its call belongs to. */
export type CallerTrait =
  | 'revoked'
  | 'without permission'
  | 'a token of no project'
  | 'over its quota'
  | 'over its limits'
  | 'over its budget'
  | 'with tiny limits'

/** What one reason changes in a call that nothing refuses. Several faults can be put together in one call. */
export type Fault = {
  method?: 'PATCH'
  query?: string
  headers?: Readonly<Record<string, string>>
  caller?: CallerTrait
  state?: ProcessState
  /** In the first message of the user, in the answer to it, and in the last message. */
  opening?: string
  answered?: string
  said?: string
  /** Parts of the last message beside its text. */
  part?: object
  members?: Readonly<Record<string, unknown>>
  /** Written behind the JSON of the body. */
  trailing?: string
  lacksAllowedTerm?: true
}

/** An answer as far as it says who refused the call. */
export type Refusal = {
  status: number
  code: string
  message: string
  param: string | null
  policyId: string | null
}

/** A reason to refuse a call. */
export type Reason = {
  /** Absent: it is true of every call, in the settings in which it is true at all. */
  fault?: Fault
  isOf(refusal: Refusal, ids: Readonly<Record<DraftName, string>>): boolean
  /** Whether a call can be refused for it in this setting; absent: in every one. */
  isIn?(setting: Setting): boolean
}
