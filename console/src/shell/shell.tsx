import { Outlet, useRouterState } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'

import { Button } from '#parts/button.tsx'
import { Toasts } from '#parts/toasts.tsx'
import { useMe } from '#session/me.ts'

import { Banners } from './banners.tsx'
import { Brand } from './brand.tsx'
import { Navigation } from './navigation.tsx'
import type { OpenWindow } from './open-window.ts'
import { Palette } from './palette.tsx'
import { ShortcutSheet } from './shortcut-sheet.tsx'
import { Top } from './top.tsx'
import { useShortcuts } from './use-shortcuts.ts'

/** What is around every page. */
export function Shell() {
  const me = useMe()
  const [open, setOpen] = useState<OpenWindow>(null)
  useShortcuts(me, setOpen)
  const main = useFocusAfterNavigation()
  return (
    <>
      <a className="skip" href="#main">
        Skip to content
      </a>
      <div className="app">
        <Side />
        <div>
          <Top me={me} onOpen={setOpen} />
          <Banners me={me} />
          <main id="main" tabIndex={-1} ref={main}>
            <Outlet />
          </main>
        </div>
      </div>
      {(open === 'search' || open === 'projects') && (
        <Palette me={me} finds={open} onClose={() => setOpen(null)} />
      )}
      {open === 'shortcuts' && <ShortcutSheet onClose={() => setOpen(null)} />}
      <Toasts />
    </>
  )
}

function Side() {
  const me = useMe()
  const [isOpen, setOpen] = useState(false)
  return (
    <nav className="side" aria-label="Main" data-open={isOpen}>
      <div className="side-head">
        <Brand />
        <Button className="open-menu" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          Menu
        </Button>
      </div>
      <div className="links">
        <Navigation me={me} onLeave={() => setOpen(false)} />
      </div>
    </nav>
  )
}

/** A screen reader begins to read at the new page. */
function useFocusAfterNavigation() {
  const element = useRef<HTMLElement>(null)
  const path = useRouterState({ select: ({ location }) => location.pathname })
  const shown = useRef(path)
  useEffect(() => {
    if (shown.current === path) return
    shown.current = path
    element.current?.focus({ preventScroll: true })
  }, [path])
  return element
}
