import { Button } from '#parts/button.tsx'
import { Dialog } from '#parts/dialog.tsx'
import { setPreferences, usePreferences } from '#session/preferences.ts'

import { places } from './navigation.tsx'

/** Every key that does something. */
export function ShortcutSheet({ onClose }: { onClose: () => void }) {
  const { hasLetterKeys } = usePreferences()
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl className="keys">
        <dt>
          <kbd>Ctrl</kbd> <kbd>K</kbd>
        </dt>
        <dd>Find a page, project, key or member</dd>
        <dt>
          <kbd>?</kbd>
        </dt>
        <dd>This list</dd>
        <dt>
          <kbd>n</kbd>
        </dt>
        <dd>New: what the page is about</dd>
        {places.map(({ to, label, letter }) => (
          <Go key={to} label={label} letter={letter} />
        ))}
        <dt>
          <kbd>Esc</kbd>
        </dt>
        <dd>Close a window or a menu</dd>
      </dl>
      <label className="check">
        <input
          type="checkbox"
          checked={hasLetterKeys}
          onChange={({ target }) => setPreferences({ hasLetterKeys: target.checked })}
        />
        <span>
          Single letters are shortcuts
          <span className="hint">Switch this off if you speak to your computer.</span>
        </span>
      </label>
      <div className="foot">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  )
}

function Go({ label, letter }: { label: string; letter: string }) {
  return (
    <>
      <dt>
        <kbd>g</kbd> <kbd>{letter}</kbd>
      </dt>
      <dd>{label}</dd>
    </>
  )
}
