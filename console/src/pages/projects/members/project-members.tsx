import type { ProjectMember } from '@gatehouse/contract/members/project-member'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'

import { projectMembersQuery, projectQuery } from '#pages/projects/queries.ts'
import { useProjectRights } from '#pages/projects/rights.ts'
import { Button } from '#parts/button.tsx'
import { Card } from '#parts/page.tsx'
import { ReadList } from '#parts/read-list.tsx'
import { Empty } from '#parts/states.tsx'
import { type Column, Table } from '#parts/table.tsx'
import { Time } from '#parts/time.tsx'

import { AddMember } from './add-member.tsx'
import { ChangeProjectRole, RemoveFromProject } from './change-member.tsx'
import { projectRoleNames } from './project-role-field.tsx'

type Open = { what: 'add' } | { what: 'role' | 'remove'; member: ProjectMember } | null

/** The people of a project. */
export function ProjectMembers() {
  const { projectId } = useParams({ from: '/shell/projects/$projectId/members' })
  const rights = useProjectRights(projectId)
  const query = useInfiniteQuery(projectMembersQuery(projectId))
  const { data: project } = useQuery(projectQuery(projectId))
  const [open, setOpen] = useState<Open>(null)
  const close = () => setOpen(null)
  const canManage = rights.canManageMembers && project?.status === 'active'
  const add = canManage && (
    <Button kind="primary" data-shortcut="n" onClick={() => setOpen({ what: 'add' })}>
      Add member
    </Button>
  )
  const columns = memberColumns((what, member) => setOpen({ what, member }), canManage)
  return (
    <Card title="Members" actions={add} className="with-list">
      <ReadList
        query={query}
        empty={
          <Empty title="This project has no members yet">
            Members see the project, and make keys of their own in it.
          </Empty>
        }
      >
        {(rows) => (
          <Table
            caption="Members of the project"
            columns={columns}
            rows={rows}
            keyOf={({ id }) => id}
          />
        )}
      </ReadList>
      {open?.what === 'add' && <AddMember projectId={projectId} onClose={close} />}
      {open?.what === 'role' && <ChangeProjectRole member={open.member} onClose={close} />}
      {open?.what === 'remove' && <RemoveFromProject member={open.member} onClose={close} />}
    </Card>
  )
}

function memberColumns(
  onOpen: (what: 'role' | 'remove', member: ProjectMember) => void,
  canManage: boolean,
): Column<ProjectMember>[] {
  return [
    {
      head: 'Member',
      isMain: true,
      cell: ({ name, email }) => (
        <>
          {name}
          <span className="second">{email}</span>
        </>
      ),
    },
    { head: 'In the project', cell: ({ role }) => projectRoleNames[role] },
    { head: 'Joined', cell: ({ created_at: at }) => <Time at={at} /> },
    {
      head: 'Actions',
      isActions: true,
      cell: (member) =>
        canManage && (
          <>
            <Button onClick={() => onOpen('role', member)}>
              Change role<span className="visually-hidden"> of {member.name}</span>
            </Button>
            <Button kind="danger" onClick={() => onOpen('remove', member)}>
              Remove<span className="visually-hidden"> {member.name}</span>
            </Button>
          </>
        ),
    },
  ]
}
