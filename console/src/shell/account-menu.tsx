import type { Me } from '@gatehouse/contract/members/me'
import { Link } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'

import { SignOut } from '#pages/account/sign-out.tsx'
import { ThemeChoice } from '#pages/account/theme-choice.tsx'

/** Who has signed in, the theme, and the way out. */
export function AccountMenu({ me }: { me: Me }) {
  const menu = useRef<HTMLDetailsElement>(null)
  const close = () => menu.current?.removeAttribute('open')
  useEffect(() => {
    const onPress = (event: Event) => {
      const isInside = event.target instanceof Node && menu.current?.contains(event.target)
      if (!isInside) menu.current?.removeAttribute('open')
    }
    document.addEventListener('pointerdown', onPress)
    return () => document.removeEventListener('pointerdown', onPress)
  }, [])
  const name = me.member?.name ?? 'Administrator key'
  return (
    <details
      className="menu"
      ref={menu}
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return
        close()
        menu.current?.querySelector('summary')?.focus()
      }}
    >
      <summary className="button">{name}</summary>
      <div>
        <p className="who">
          <span className="strong">{name}</span>
          <br />
          <span className="muted">{me.member?.email ?? 'signed in with a key'}</span>
        </p>
        <Link to="/account" onClick={close}>
          Your account
        </Link>
        <ThemeChoice />
        <SignOut />
      </div>
    </details>
  )
}
