import type { Me } from '@gatehouse/contract/members/me'
import { Link } from '@tanstack/react-router'

import { may } from '#session/me.ts'

export type Place = {
  to: '/projects' | '/keys' | '/members' | '/roles' | '/account'
  label: string
  group: string
  /** The letter after g. */
  letter: string
  isFor: (me: Me) => boolean
}

/** The pages, as the menu, the palette and the keyboard offer them. */
export const places: readonly Place[] = [
  {
    to: '/projects',
    label: 'Projects',
    group: 'Access',
    letter: 'p',
    isFor: (me) => may(me, 'projects.read'),
  },
  {
    to: '/members',
    label: 'Members',
    group: 'Access',
    letter: 'm',
    isFor: (me) => may(me, 'members.read'),
  },
  {
    to: '/roles',
    label: 'Roles',
    group: 'Access',
    letter: 'r',
    isFor: (me) => may(me, 'members.read'),
  },
  {
    to: '/keys',
    label: 'Administrator keys',
    group: 'Access',
    letter: 'k',
    isFor: (me) => may(me, 'admin_api_keys.read'),
  },
  { to: '/account', label: 'Your account', group: 'You', letter: 'a', isFor: () => true },
]

/** The pages that a person may see, by their group. */
export function Navigation({ me, onLeave }: { me: Me; onLeave: () => void }) {
  const groups = Map.groupBy(
    places.filter(({ isFor }) => isFor(me)),
    ({ group }) => group,
  )
  return [...groups].map(([group, links]) => (
    <div key={group}>
      <h2>{group}</h2>
      <ul>
        {links.map(({ to, label }) => (
          <li key={to}>
            <Link to={to} onClick={onLeave}>
              {label}
            </Link>
          </li>
        ))}
      </ul>
    </div>
  ))
}
