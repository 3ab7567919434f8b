import type { AdminApiKey } from '@gatehouse/contract/api-key'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'

import { call } from '#api/call.ts'
import { listQuery } from '#api/list-query.ts'
import { Expiry } from '#pages/projects/keys/key-columns.tsx'
import { Button } from '#parts/button.tsx'
import { Card, Page } from '#parts/page.tsx'
import { ReadList } from '#parts/read-list.tsx'
import { Empty } from '#parts/states.tsx'
import { type Column, Table } from '#parts/table.tsx'
import { TimeOr } from '#parts/time.tsx'
import { mayChange, useMe } from '#session/me.ts'

import { CreateAdminKey } from './create-admin-key.tsx'
import { RevokeAdminKey } from './revoke-admin-key.tsx'

const adminKeysQuery = listQuery(['admin-keys'], (page, signal) =>
  call('GET /v1/organization/admin_api_keys', { query: page }, { signal }),
)

type Open = 'new' | AdminApiKey | null

/** The keys with which servers administer the organization. */
export function AdminKeys() {
  const me = useMe()
  const query = useInfiniteQuery(adminKeysQuery)
  const [open, setOpen] = useState<Open>(null)
  const canWrite = mayChange(me, 'admin_api_keys.write')
  const create = canWrite && (
    <Button kind="primary" data-shortcut="n" onClick={() => setOpen('new')}>
      New administrator key
    </Button>
  )
  const columns = columnsFor(canWrite, me.credential.id, setOpen)
  return (
    <Page
      title="Administrator keys"
      sub="For servers that administer this organization. People sign in instead."
      actions={create}
    >
      <Card className="list">
        <ReadList query={query} empty={<Empty title="There are no administrator keys" />}>
          {(rows) => (
            <Table
              caption="Administrator keys"
              columns={columns}
              rows={rows}
              keyOf={({ id }) => id}
            />
          )}
        </ReadList>
      </Card>
      {open === 'new' && <CreateAdminKey onClose={() => setOpen(null)} />}
      {open !== null && open !== 'new' && (
        <RevokeAdminKey apiKey={open} onClose={() => setOpen(null)} />
      )}
    </Page>
  )
}

function columnsFor(
  canWrite: boolean,
  ownId: string | null,
  onRevoke: (key: AdminApiKey) => void,
): Column<AdminApiKey>[] {
  return [
    {
      head: 'Key',
      isMain: true,
      cell: ({ id, name, redacted_value: value }) => (
        <>
          {name}
          {id === ownId && <span className="muted"> (you have signed in with it)</span>}
          <code className="second">{value}</code>
        </>
      ),
    },
    {
      head: 'May do',
      cell: ({ permissions }) => (
        <span title={permissions.join(', ')}>
          {permissions.length === 1 ? '1 permission' : `${permissions.length} permissions`}
        </span>
      ),
    },
    { head: 'Last used', cell: ({ last_used_at: at }) => <TimeOr at={at} none="never" /> },
    { head: 'Expires', cell: ({ expires_at: at }) => <Expiry at={at} /> },
    {
      head: 'Actions',
      isActions: true,
      cell: (key) =>
        canWrite && (
          <Button kind="danger" onClick={() => onRevoke(key)}>
            Revoke<span className="visually-hidden"> {key.name}</span>
          </Button>
        ),
    },
  ]
}
