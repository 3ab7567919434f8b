import type { Me } from '@gatehouse/contract/members/me'
import { useParams } from '@tanstack/react-router'

import { useProjectName } from '#pages/projects/queries.ts'
import { Button } from '#parts/button.tsx'

import { AccountMenu } from './account-menu.tsx'
import type { OpenWindow } from './open-window.ts'

type TopProps = { me: Me; onOpen: (window: OpenWindow) => void }

/** The organization, the project, the search, and the person. */
export function Top({ me, onOpen }: TopProps) {
  const { projectId } = useParams({ strict: false })
  const project = useProjectName(projectId)
  return (
    <header className="top">
      <span className="name" title={me.organization.name}>
        {me.organization.name}
      </span>
      <Button aria-haspopup="dialog" onClick={() => onOpen('projects')}>
        {project ?? 'All projects'} <span aria-hidden="true">▾</span>
      </Button>
      <Button className="find" aria-haspopup="dialog" onClick={() => onOpen('search')}>
        <span>
          Find<span className="long"> a page, project, key or member</span>
        </span>
        <kbd>Ctrl K</kbd>
      </Button>
      <span className="space" />
      <Button className="help" aria-label="Keyboard shortcuts" onClick={() => onOpen('shortcuts')}>
        ?
      </Button>
      <AccountMenu me={me} />
    </header>
  )
}
