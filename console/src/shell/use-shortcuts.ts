import type { Me } from '@gatehouse/contract/members/me'
import { useNavigate } from '@tanstack/react-router'
import { useEffect } from 'react'

import { readPreferences } from '#session/preferences.ts'

import { places } from './navigation.tsx'
import type { OpenWindow } from './open-window.ts'

/** How long after g its letter may come. */
const pairMs = 1500

/** Keys that work on every page; letters only outside of fields and windows, and only if the person wants them. */
export function useShortcuts(me: Me, open: (window: OpenWindow) => void) {
  const navigate = useNavigate()
  useEffect(() => {
    let goAt = -Infinity
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault()
        if (!document.querySelector('dialog[open]')) open('search')
        return
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isTaken(event.target)) return
      const place = places.find(({ letter, isFor }) => letter === event.key && isFor(me))
      if (place && event.timeStamp - goAt < pairMs) void navigate({ to: place.to })
      else if (event.key === '?') open('shortcuts')
      else if (event.key === 'n') press('[data-shortcut="n"]')
      goAt = event.key === 'g' ? event.timeStamp : -Infinity
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [me, navigate, open])
}

/** Whether the key belongs to a field, a window, or the person wants no letters. */
function isTaken(target: EventTarget | null): boolean {
  if (!readPreferences().hasLetterKeys || document.querySelector('dialog[open]')) return true
  return target instanceof Element && target.closest('input, select, textarea') !== null
}

function press(selector: string) {
  const element = document.querySelector(selector)
  if (element instanceof HTMLElement) element.click()
}
