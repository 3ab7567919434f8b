import type { ProjectApiKey } from '@gatehouse/contract/api-key'

import { useChange } from '#api/use-change.ts'
import { Confirm } from '#parts/confirm.tsx'
import { TimeOr } from '#parts/time.tsx'
import { toast } from '#parts/toasts.tsx'

type RevokeKeyProps = { projectId: string; apiKey: ProjectApiKey; onClose: () => void }

export function RevokeKey({ projectId, apiKey, onClose }: RevokeKeyProps) {
  const { id, name, last_used_at: usedAt } = apiKey
  const change = useChange(
    'DELETE /v1/organization/projects/:project_id/api_keys/:key_id',
    [['keys', projectId]],
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
      onConfirm={() => change.mutate({ params: { project_id: projectId, key_id: id } })}
    >
      <p>
        Every call with this key is refused with 401 within 5 seconds. A key that is revoked cannot
        come back.
      </p>
      <p>
        Last used: <TimeOr at={usedAt} none="never" />.
      </p>
    </Confirm>
  )
}
