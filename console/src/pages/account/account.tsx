import type { Me } from '@gatehouse/contract/members/me'
import { Link } from '@tanstack/react-router'

import { nameOfRole } from '#pages/members/role-names.ts'
import { SessionList } from '#pages/members/session-list.tsx'
import { projectRoleNames } from '#pages/projects/members/project-role-field.tsx'
import { permissionNames, permissionWords } from '#pages/roles/permission-words.ts'
import { Card, Page } from '#parts/page.tsx'
import { may, useMe } from '#session/me.ts'

import { SignOut } from './sign-out.tsx'
import { ThemeChoice } from './theme-choice.tsx'

/** Who the person is here, and what that allows. */
export function Account() {
  const me = useMe()
  return (
    <Page title="Your account" sub={`In ${me.organization.name}`} actions={<SignOut />}>
      <div className="grid">
        <Card title="You">
          <Identity me={me} />
        </Card>
        <Card title="This browser">
          <ThemeChoice />
        </Card>
        <Card title="What you may do">
          <ul className="plain">
            {permissionNames
              .filter((name) => may(me, name))
              .map((name) => (
                <li key={name}>{permissionWords[name]}</li>
              ))}
          </ul>
        </Card>
        {me.member !== null && (
          <>
            <Card title="Your projects">
              <OwnProjects me={me} />
            </Card>
            <Card title="Where you are signed in">
              <SessionList memberId={me.member.id} canEnd />
            </Card>
          </>
        )}
      </div>
    </Page>
  )
}

function Identity({ me }: { me: Me }) {
  const { member, credential, role, role_source: source } = me
  if (member === null || role === null) {
    return (
      <dl className="facts">
        <dt>Signed in with</dt>
        <dd>an administrator key</dd>
        <dt>Its id</dt>
        <dd>
          <code>{credential.id}</code>
        </dd>
      </dl>
    )
  }
  return (
    <dl className="facts">
      <dt>Name</dt>
      <dd>{member.name}</dd>
      <dt>Address</dt>
      <dd>{member.email}</dd>
      <dt>Your id</dt>
      <dd>
        <code>{member.id}</code>
      </dd>
      <dt>Role</dt>
      <dd>
        {nameOfRole(role)}
        {source !== null && source !== 'assigned' && ` by ${source}`}
      </dd>
    </dl>
  )
}

function OwnProjects({ me: { projects, has_more_projects: hasMore } }: { me: Me }) {
  if (projects.length === 0) return <p className="muted">You belong to no project yet.</p>
  return (
    <>
      <ul className="plain">
        {projects.map(({ id, name, role }) => (
          <li key={id}>
            <Link to="/projects/$projectId" params={{ projectId: id }}>
              {name}
            </Link>{' '}
            <span className="muted">{projectRoleNames[role]}</span>
          </li>
        ))}
      </ul>
      {hasMore && <p className="muted">There are more.</p>}
    </>
  )
}
