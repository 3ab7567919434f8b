import { guardrailPorts } from '#moderation/guardrails/send-question.ts'
import { ApiError } from '#platform/api-error.ts'
import type { FindAddresses } from '#platform/egress/find-addresses.ts'
import { requirePublicTarget } from '#platform/egress/tenant-address.ts'

export type UrlDeps = {
  findAddresses: FindAddresses
  /** The operator's `host:port` entries: they may be called although they are private. */
  privateTargets: readonly string[]
}

/** Refuses an address that may not be called, or whose host name leads to a private address now; throws a 422. */
export async function requirePublicUrl(url: string, deps: UrlDeps) {
  await requirePublicTarget(url, { ...deps, ports: guardrailPorts, refuse })
}

const refuse = (rule: string) =>
  new ApiError('invalid_parameter', `'body.url' ${rule}.`, { param: 'body.url' })
