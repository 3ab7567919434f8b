import type { ProjectApiKey } from '@gatehouse/contract/api-key'

import { LimitTags } from '#pages/projects/limits/limit-tags.tsx'
import type { useProjectRights } from '#pages/projects/rights.ts'
import { Button } from '#parts/button.tsx'
import { Chip } from '#parts/chip.tsx'
import type { Column } from '#parts/table.tsx'
import { TimeOr } from '#parts/time.tsx'

type Actions = {
  rights: ReturnType<typeof useProjectRights>
  onEdit: (key: ProjectApiKey) => void
  onRevoke: (key: ProjectApiKey) => void
}

export function keyColumns({ rights, onEdit, onRevoke }: Actions): Column<ProjectApiKey>[] {
  const ownerOf = (key: ProjectApiKey) => {
    if (rights.isOwn(key)) return 'you'
    return key.owner.type === 'organization' ? 'organization' : <code>{key.owner.id}</code>
  }
  return [
    {
      head: 'Key',
      isMain: true,
      cell: ({ name, redacted_value: value }) => (
        <>
          {name}
          <code className="second">{value}</code>
        </>
      ),
    },
    { head: 'Belongs to', cell: ownerOf },
    {
      head: 'Last used',
      cell: ({ last_used_at: at }) => <TimeOr at={at} none="never" />,
    },
    { head: 'Expires', cell: ({ expires_at: at }) => <Expiry at={at} /> },
    { head: 'Limits', cell: (key) => <LimitTags of={key} none="of the project" /> },
    {
      head: 'Actions',
      isActions: true,
      cell: (key) => (
        <>
          {rights.canEditLimits && key.managed_by === null && (
            <Button onClick={() => onEdit(key)}>
              Limits<span className="visually-hidden"> of {key.name}</span>
            </Button>
          )}
          {rights.canRevoke(key) && (
            <Button kind="danger" onClick={() => onRevoke(key)}>
              Revoke<span className="visually-hidden"> {key.name}</span>
            </Button>
          )}
        </>
      ),
    },
  ]
}

const soonSeconds = 7 * 86_400

/** When a key stops by itself; soon enough to be looked after, or in the past. */
export function Expiry({ at }: { at: number | undefined }) {
  const leftSeconds = at === undefined ? Infinity : at - Date.now() / 1000
  if (leftSeconds <= 0) return <Chip kind="bad">expired</Chip>
  const time = <TimeOr at={at} none="never" />
  return leftSeconds < soonSeconds ? <Chip kind="waiting">{time}</Chip> : time
}
