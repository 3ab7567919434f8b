import type { ProjectApiKey } from '@gatehouse/contract/api-key'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'

import { keysQuery, projectQuery } from '#pages/projects/queries.ts'
import { useProjectRights } from '#pages/projects/rights.ts'
import { Button } from '#parts/button.tsx'
import { Card } from '#parts/page.tsx'
import { ReadList } from '#parts/read-list.tsx'
import { Empty } from '#parts/states.tsx'
import { Table } from '#parts/table.tsx'

import { CreateKey } from './create-key.tsx'
import { EditKey } from './edit-key.tsx'
import { keyColumns } from './key-columns.tsx'
import { RevokeKey } from './revoke-key.tsx'

type Open = { what: 'new' } | { what: 'edit' | 'revoke'; key: ProjectApiKey } | null

/** The keys with which programs and people call models in this project. */
export function ProjectKeys() {
  const { projectId } = useParams({ from: '/shell/projects/$projectId/keys' })
  const rights = useProjectRights(projectId)
  const query = useInfiniteQuery(keysQuery(projectId))
  const { data: project } = useQuery(projectQuery(projectId))
  const [open, setOpen] = useState<Open>(null)
  const close = () => setOpen(null)
  const canMake = rights.canMakeKeys && project?.status === 'active'
  const create = canMake && (
    <Button kind="primary" data-shortcut="n" onClick={() => setOpen({ what: 'new' })}>
      New key
    </Button>
  )
  const columns = keyColumns({
    rights,
    onEdit: (key) => setOpen({ what: 'edit', key }),
    onRevoke: (key) => setOpen({ what: 'revoke', key }),
  })
  return (
    <Card title="API keys" actions={create} className="with-list">
      <ReadList
        query={query}
        empty={
          <Empty title="There are no keys yet">
            {canMake
              ? 'Make one to call models: its secret is shown once, with a snippet for your SDK.'
              : 'Administrators and members of the project can make keys.'}
          </Empty>
        }
      >
        {(rows) => (
          <Table caption="API keys" columns={columns} rows={rows} keyOf={({ id }) => id} />
        )}
      </ReadList>
      {open?.what === 'new' && <CreateKey projectId={projectId} onClose={close} />}
      {open?.what === 'edit' && <EditKey projectId={projectId} apiKey={open.key} onClose={close} />}
      {open?.what === 'revoke' && (
        <RevokeKey projectId={projectId} apiKey={open.key} onClose={close} />
      )}
    </Card>
  )
}
