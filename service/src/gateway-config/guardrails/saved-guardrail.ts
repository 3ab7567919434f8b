import type { Guardrail } from '@gatehouse/contract/policy-gateway/guardrails'

import type { SecretBox } from '#platform/secrets.ts'

/** A guardrail of an organization as it is saved. */
export type SavedGuardrail = {
  readonly id: string
  readonly organizationId: string
  readonly name: string
  readonly url: string
  /** Sealed. */
  readonly secret: Buffer
  readonly enabled: boolean
  readonly mode: Guardrail['mode']
  readonly onError: Guardrail['on_error']
  readonly deadlineMs: number
  /** Null: every project. */
  readonly projectIds: readonly string[] | null
  /** Null: no set does. */
  readonly managedBy: string | null
  readonly createdAt: Date
  readonly updatedAt: Date
}

type Identity = Pick<SavedGuardrail, 'id' | 'organizationId'>

/** Names table, column, organization and row, so that a sealed value cannot be moved to another guardrail. */
export const guardrailSealContext = ({ id, organizationId }: Identity) =>
  `guardrail/secret/${organizationId}/${id}`

export const sealGuardrailSecret = (guardrail: Identity, secret: string, secretBox: SecretBox) =>
  secretBox.seal(Buffer.from(secret), guardrailSealContext(guardrail))

/** Undefined if no master key opens it: it has to be given once more. */
export function openGuardrailSecret(
  guardrail: Identity & { secret: Buffer },
  secretBox: SecretBox,
): string | undefined {
  try {
    return secretBox.open(guardrail.secret, guardrailSealContext(guardrail)).toString()
  } catch {
    return undefined
  }
}
