import { useState } from 'react'

import { Button } from '#parts/button.tsx'
import { CopyButton } from '#parts/copy-button.tsx'
import { Dialog } from '#parts/dialog.tsx'
import { Field } from '#parts/field.tsx'

import { snippetsFor } from './snippets.ts'

type NewSecretProps = {
  name: string
  secret: string
  /** Keys of administrators call no models. */
  hasSnippets?: boolean
  onClose: () => void
}

/** The only time that a secret is shown. The window does not close by accident. */
export function NewSecret({ name, secret, hasSnippets = true, onClose }: NewSecretProps) {
  return (
    <Dialog title={`${name} has been created`} onClose={onClose} isKept>
      <p>
        Copy the secret now: <span className="strong">it is shown only here</span>, and cannot be
        read again.
      </p>
      <div className="secret">
        <code aria-label="Secret">{secret}</code>
        <CopyButton text={secret} label="the secret" />
      </div>
      {hasSnippets && <Snippets secret={secret} />}
      <div className="foot">
        <Button kind="primary" onClick={onClose}>
          I have copied it
        </Button>
      </div>
    </Dialog>
  )
}

function Snippets({ secret }: { secret: string }) {
  const snippets = snippetsFor({ url: window.location.origin, secret })
  const [index, setIndex] = useState(0)
  const text = snippets[index]?.text ?? ''
  return (
    <>
      <div className="snippet">
        <Field label="A first call with">
          {(ids) => (
            <select
              {...ids}
              className="short"
              value={index}
              onChange={({ target }) => setIndex(Number(target.value))}
            >
              {snippets.map(({ name }, at) => (
                <option key={name} value={at}>
                  {name}
                </option>
              ))}
            </select>
          )}
        </Field>
        <CopyButton text={text} label="the snippet" />
      </div>
      <pre tabIndex={0} aria-label="Snippet">
        {text}
      </pre>
      <p className="hint">Put the name of a model in place of MODEL.</p>
    </>
  )
}
