import type { Project } from '@gatehouse/contract/project'
import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'

import { Button } from '#parts/button.tsx'
import { writeNumber } from '#parts/money.ts'
import { Card } from '#parts/page.tsx'
import { Read } from '#parts/read.tsx'
import { Time } from '#parts/time.tsx'

import { ArchiveProject } from './archive-project.tsx'
import { EditLimits, EditModels, EditProject } from './edit-project.tsx'
import { describeBudget, limitLabels, limitNames } from './limits/limit-words.ts'
import { Labels } from './project-list.tsx'
import { projectQuery } from './queries.ts'
import { useProjectRights } from './rights.ts'

type Editing = 'project' | 'limits' | 'models' | 'archive' | null

/** What holds for every key and every call of the project. */
export function ProjectSettings() {
  const { projectId } = useParams({ from: '/shell/projects/$projectId' })
  const query = useQuery(projectQuery(projectId))
  return <Read query={query}>{(project) => <Cards project={project} />}</Read>
}

function Cards({ project }: { project: Project }) {
  const [editing, setEditing] = useState<Editing>(null)
  const rights = useProjectRights(project.id)
  const isOpen = project.status === 'active' && project.managed_by === null
  const close = () => setEditing(null)
  const edit = (what: Editing, isAllowed: boolean, label = 'Edit') =>
    isOpen &&
    isAllowed && (
      <Button onClick={() => setEditing(what)}>
        {label}
        <span className="visually-hidden"> {what}</span>
      </Button>
    )
  return (
    <div className="grid">
      <Card title="About" actions={edit('project', rights.canEditProject)}>
        <About project={project} />
      </Card>
      <Card title="Limits and budget" actions={edit('limits', rights.canEditLimits)}>
        <OwnNumbers project={project} />
      </Card>
      <Card title="Models" actions={edit('models', rights.canEditProject)}>
        <Models allowed={project.allowed_models} />
      </Card>
      <OwnKeyRules project={project} />
      {isOpen && rights.canEditProject && (
        <Card title="Archive" actions={edit('archive', true, 'Archive')}>
          <p className="muted">
            Its keys stop working within 5 seconds, for good. Reports and events keep its name.
          </p>
        </Card>
      )}
      {editing === 'project' && <EditProject project={project} onClose={close} />}
      {editing === 'limits' && <EditLimits project={project} onClose={close} />}
      {editing === 'models' && <EditModels project={project} onClose={close} />}
      {editing === 'archive' && <ArchiveProject project={project} onClose={close} />}
    </div>
  )
}

function About({ project }: { project: Project }) {
  return (
    <dl className="facts">
      <dt>Name</dt>
      <dd>{project.name}</dd>
      <dt>Created</dt>
      <dd>
        <Time at={project.created_at} />
      </dd>
      <dt>Labels</dt>
      <dd>
        <Labels labels={project.labels} />
      </dd>
    </dl>
  )
}

function OwnNumbers({ project }: { project: Project }) {
  const { limits, monthly_budget: budget } = project
  return (
    <dl className="facts">
      {limitNames.map((name) => {
        const value = limits?.[name] ?? null
        return (
          <Fact key={name} label={limitLabels[name]}>
            {value === null ? null : writeNumber(value)}
          </Fact>
        )
      })}
      <Fact label="Budget" none="none">
        {budget && describeBudget(budget)}
      </Fact>
    </dl>
  )
}

type FactProps = { label: string; none?: string; children: string | null }

function Fact({ label, none = 'as the tier has it', children }: FactProps) {
  return (
    <>
      <dt>{label}</dt>
      <dd>{children ?? <span className="muted">{none}</span>}</dd>
    </>
  )
}

function Models({ allowed }: { allowed: readonly string[] | null }) {
  if (allowed === null) return <p>All models, also those that are added later.</p>
  if (allowed.length === 0) return <p>None: every call is refused.</p>
  return (
    <p className="tags">
      {allowed.map((id) => (
        <code className="tag" key={id}>
          {id}
        </code>
      ))}
    </p>
  )
}

const daySeconds = 86_400

/** What the project prescribes for the keys that its members make for themselves. */
function OwnKeyRules({ project: { key_defaults: rules } }: { project: Project }) {
  const seconds = rules?.expires_in_seconds ?? null
  const budget = rules?.monthly_budget ?? null
  return (
    <Card title="Own keys of members">
      <dl className="facts">
        <Fact label="Work for" none="as long as is asked for">
          {seconds === null ? null : `at most ${writeNumber(Math.ceil(seconds / daySeconds))} days`}
        </Fact>
        <Fact label="Budget of each" none="none prescribed">
          {budget && `at most ${describeBudget(budget)}`}
        </Fact>
      </dl>
    </Card>
  )
}
