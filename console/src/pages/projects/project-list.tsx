import type { Project } from '@gatehouse/contract/project'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'

import { useChange } from '#api/use-change.ts'
import { Button } from '#parts/button.tsx'
import { Chip } from '#parts/chip.tsx'
import { FormDialog } from '#parts/dialog.tsx'
import { Field, textOf } from '#parts/field.tsx'
import { Card, Page } from '#parts/page.tsx'
import { ReadList } from '#parts/read-list.tsx'
import { Empty } from '#parts/states.tsx'
import { type Column, Table } from '#parts/table.tsx'
import { Time } from '#parts/time.tsx'
import { toast } from '#parts/toasts.tsx'
import { mayChange, useMe } from '#session/me.ts'

import { LimitTags } from './limits/limit-tags.tsx'
import { projectsQuery } from './queries.ts'

const columns: readonly Column<Project>[] = [
  {
    head: 'Project',
    isMain: true,
    cell: ({ id, name }) => (
      <Link to="/projects/$projectId" params={{ projectId: id }}>
        {name}
      </Link>
    ),
  },
  {
    head: 'Status',
    cell: ({ status }) =>
      status === 'active' ? <Chip kind="good">active</Chip> : <Chip kind="calm">archived</Chip>,
  },
  { head: 'Limits', cell: (project) => <LimitTags of={project} none="of the organization" /> },
  { head: 'Labels', cell: ({ labels }) => <Labels labels={labels} /> },
  { head: 'Created', cell: ({ created_at: at }) => <Time at={at} /> },
]

export function Labels({ labels }: { labels: Readonly<Record<string, string>> }) {
  const pairs = Object.entries(labels)
  if (pairs.length === 0) return <span className="muted">none</span>
  return (
    <span className="tags">
      {pairs.map(([name, value]) => (
        <span className="tag" key={name}>
          {name}: {value}
        </span>
      ))}
    </span>
  )
}

export function ProjectList() {
  const me = useMe()
  const query = useInfiniteQuery(projectsQuery)
  const [isCreating, setCreating] = useState(false)
  const canCreate = mayChange(me, 'projects.write')
  const create = canCreate && (
    <Button kind="primary" data-shortcut="n" onClick={() => setCreating(true)}>
      New project
    </Button>
  )
  return (
    <Page
      title="Projects"
      sub="A project has its own keys, members, limits and budget. Every call belongs to one."
      actions={create}
    >
      <Card className="list">
        <ReadList query={query} empty={<Empty title="There are no projects yet" />}>
          {(rows) => (
            <Table caption="Projects" columns={columns} rows={rows} keyOf={({ id }) => id} />
          )}
        </ReadList>
      </Card>
      {isCreating && <CreateProject onClose={() => setCreating(false)} />}
    </Page>
  )
}

function CreateProject({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate()
  const change = useChange('POST /v1/organization/projects', [['projects']], ({ id, name }) => {
    toast(`The project ${name} has been created.`)
    onClose()
    void navigate({ to: '/projects/$projectId', params: { projectId: id } })
  })
  return (
    <FormDialog
      title="New project"
      submit="Create project"
      isBusy={change.isPending}
      error={change.error}
      onClose={onClose}
      onSubmit={(form) => change.mutate({ body: { name: textOf(form, 'name') } })}
    >
      <Field label="Name" hint="As reports and events name it. It can be changed later.">
        {(ids) => <input {...ids} name="name" required maxLength={80} autoComplete="off" />}
      </Field>
    </FormDialog>
  )
}
