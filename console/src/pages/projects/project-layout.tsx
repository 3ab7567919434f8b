import { useQuery } from '@tanstack/react-query'
import { Link, Outlet, useParams } from '@tanstack/react-router'

import { Chip } from '#parts/chip.tsx'
import { Page } from '#parts/page.tsx'
import { Read } from '#parts/read.tsx'

import { projectQuery } from './queries.ts'
import { useProjectRights } from './rights.ts'

/** One project: its title, and its three pages. */
export function ProjectLayout() {
  const { projectId } = useParams({ from: '/shell/projects/$projectId' })
  const query = useQuery(projectQuery(projectId))
  const { canSeeMembers } = useProjectRights(projectId)
  return (
    <Read query={query}>
      {({ name, status, managed_by: set }) => (
        <Page
          title={name}
          sub={
            <>
              <code>{projectId}</code>
              {status === 'archived' && ' · archived, so its keys do not work'}
              {set !== null && ` · managed by ${set}, so it is changed there`}
            </>
          }
          actions={status === 'archived' ? <Chip kind="calm">archived</Chip> : undefined}
        >
          <nav className="tabs" aria-label="Project">
            <Link to="/projects/$projectId" params={{ projectId }} activeOptions={{ exact: true }}>
              Settings
            </Link>
            <Link to="/projects/$projectId/keys" params={{ projectId }}>
              Keys
            </Link>
            {canSeeMembers && (
              <Link to="/projects/$projectId/members" params={{ projectId }}>
                Members
              </Link>
            )}
          </nav>
          <Outlet />
        </Page>
      )}
    </Read>
  )
}
