import { Link } from '@tanstack/react-router'

import { Page } from '#parts/page.tsx'
import { Empty } from '#parts/states.tsx'

export function NotFound() {
  return (
    <Page title="There is no such page">
      <Empty title="The address is mistyped, or of another release">
        <Link to="/projects">Go to the projects</Link>
      </Empty>
    </Page>
  )
}
