/** Why a call did not succeed, in words that can be shown. */
export class Problem extends Error {
  /** 0: there was no answer. */
  readonly status: number
  /** One of docs/errors.md; `offline` when there was no answer. */
  readonly code: string
  /** The member of the request that is wrong, such as `body.name`. */
  readonly param: string | null
  readonly requestId: string | null

  constructor(details: {
    status: number
    code: string
    message: string
    param?: string | null
    requestId?: string | null
  }) {
    super(details.message)
    this.name = 'Problem'
    this.status = details.status
    this.code = details.code
    this.param = details.param ?? null
    this.requestId = details.requestId ?? null
  }

  /** The call may have been made although there is no answer that says so. */
  get hasUnknownOutcome(): boolean {
    return this.status === 0 || this.status === 503
  }
}

export const noAnswer = () =>
  new Problem({
    status: 0,
    code: 'offline',
    message: 'The gateway did not answer. Check your connection, and try again.',
  })

/** Words for what a person can meet and mend here; for everything else the gateway's own message is shown. */
const words: Readonly<Record<string, string>> = {
  last_owner:
    'This is the last active owner. Make another active member an owner first, then try again.',
  last_admin_key:
    'This is the last key that can manage administrator keys. Create another one first.',
  member_email_taken:
    'This address already belongs to a member. Search for it in the list of members.',
  default_project:
    'The default project cannot be archived, because tokens that name no project use it.',
  project_archived: 'This project is archived, so it cannot be changed.',
  console_read_only:
    'The operator of this gateway lets the console read only. Make the change with an administrator key.',
  cross_site_request: 'This page is older than your session. Load it again, and repeat the change.',
  rate_limit_exceeded:
    'Your organization has made too many requests. Wait a minute, and try again.',
  concurrency_limit_exceeded:
    'Your organization has too many requests open at once. Wait a moment, and try again.',
  overloaded: 'The gateway is busy. Wait a moment, and try again.',
}

/** Reads the body of a refusal, which is an object with `error`. */
export function toProblem(status: number, requestId: string | null, body: unknown): Problem {
  const error = (body as { error?: Partial<Record<string, unknown>> } | null | undefined)?.error
  const text = (value: unknown) => (typeof value === 'string' ? value : undefined)
  const code = text(error?.['code']) ?? 'unknown'
  const message =
    words[code] ?? text(error?.['message']) ?? `The gateway answered ${status}. Try again.`
  return new Problem({ status, code, message, param: text(error?.['param']) ?? null, requestId })
}
