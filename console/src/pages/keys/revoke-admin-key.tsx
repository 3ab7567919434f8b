import type { AdminApiKey } from '@gatehouse/contract/api-key'

import { useChange } from '#api/use-change.ts'
import { Confirm } from '#parts/confirm.tsx'
import { TimeOr } from '#parts/time.tsx'
import { toast } from '#parts/toasts.tsx'

type RevokeProps = { apiKey: AdminApiKey; onClose: () => void }

export function RevokeAdminKey({ apiKey, onClose }: RevokeProps) {
  const { id, name, last_used_at: usedAt } = apiKey
  const change = useChange(
    'DELETE /v1/organization/admin_api_keys/:key_id',
    [['admin-keys']],
    () => {
      toast(`${name} has been revoked.`)
      onClose()
    },
  )
  return (
    <Confirm
      title={`Revoke ${name}?`}
      submit="Revoke key"
      isBusy={change.isPending}
      error={change.error}
      onClose={onClose}
      onConfirm={() => change.mutate({ params: { key_id: id } })}
    >
      <p>
        What uses this key can administer nothing any more, within 5 seconds, and sessions that were
        opened with it end.
      </p>
      <p>
        Last used: <TimeOr at={usedAt} none="never" />.
      </p>
    </Confirm>
  )
}
