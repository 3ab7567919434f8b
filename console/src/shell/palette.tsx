import type { Me } from '@gatehouse/contract/members/me'
import { useNavigate } from '@tanstack/react-router'
import { type KeyboardEvent, useId, useState } from 'react'

import { Dialog } from '#parts/dialog.tsx'

import { matchEntries } from './match-entries.ts'
import { type Entry, useEntries } from './use-entries.ts'

type PaletteProps = { me: Me; finds: 'search' | 'projects'; onClose: () => void }

/** Goes to a page, project, key or member by a few letters of its name. */
export function Palette({ me, finds, onClose }: PaletteProps) {
  const navigate = useNavigate()
  const listId = useId()
  const [text, setText] = useState('')
  const [chosen, setChosen] = useState(0)
  const { entries, isReading } = useEntries(me, finds)
  const found = matchEntries(entries, text)
  const at = Math.min(chosen, found.length - 1)
  const go = (entry: Entry | undefined) => {
    if (!entry) return
    onClose()
    void navigate(entry.target)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter') go(found[at])
    else if (event.key === 'ArrowDown') setChosen((at + 1) % Math.max(1, found.length))
    else if (event.key === 'ArrowUp') setChosen((at - 1 + found.length) % Math.max(1, found.length))
    else return
    event.preventDefault()
  }
  const title = finds === 'projects' ? 'Go to a project' : 'Go to'
  return (
    <Dialog title={title} className="palette" onClose={onClose}>
      <input
        type="text"
        role="combobox"
        aria-label={title}
        aria-expanded={found.length > 0}
        aria-controls={listId}
        aria-activedescendant={found.length > 0 ? `${listId}-${at}` : undefined}
        autoComplete="off"
        spellCheck={false}
        placeholder={finds === 'projects' ? 'Name of the project' : 'Name or address'}
        value={text}
        onChange={({ target }) => {
          setText(target.value)
          setChosen(0)
        }}
        onKeyDown={onKeyDown}
      />
      <ul role="listbox" id={listId} aria-label="Found">
        {found.map((entry, index) => (
          <Option
            key={entry.id}
            id={`${listId}-${index}`}
            entry={entry}
            isChosen={index === at}
            onChoose={() => go(entry)}
          />
        ))}
      </ul>
      {found.length === 0 && (
        <p className="none" role="status">
          {isReading ? 'Reading …' : 'Nothing has this name. Try fewer letters.'}
        </p>
      )}
    </Dialog>
  )
}

type OptionProps = { id: string; entry: Entry; isChosen: boolean; onChoose: () => void }

function Option({ id, entry, isChosen, onChoose }: OptionProps) {
  return (
    <li
      id={id}
      role="option"
      aria-selected={isChosen}
      onClick={onChoose}
      ref={(element) => {
        if (isChosen) element?.scrollIntoView({ block: 'nearest' })
      }}
    >
      <span>{entry.name}</span>
      <span className="muted small">{entry.kind}</span>
    </li>
  )
}
