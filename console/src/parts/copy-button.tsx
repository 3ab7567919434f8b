import { useState } from 'react'

import { Button } from './button.tsx'

/** Copies a text. Says so in its own place, because a screen reader is there already. */
export function CopyButton({ text, label }: { text: string; label: string }) {
  const [said, setSaid] = useState('')
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setSaid('Copied')
    } catch {
      setSaid('Select and copy it yourself')
    }
  }
  return (
    <Button onClick={() => void copy()} aria-live="polite" title={label}>
      {said === '' ? 'Copy' : said}
      <span className="visually-hidden"> {label}</span>
    </Button>
  )
}
