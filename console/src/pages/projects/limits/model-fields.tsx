import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'

import { modelsQuery } from '#pages/projects/queries.ts'
import { Check } from '#parts/field.tsx'
import { Read } from '#parts/read.tsx'

/** Which models may be called: all, or those that are chosen. */
export function ModelFields({ allowed }: { allowed: readonly string[] | null }) {
  const query = useQuery(modelsQuery)
  const [isAll, setAll] = useState(allowed === null)
  const choice = (label: string, value: boolean) => (
    <label className="check">
      <input
        type="radio"
        name="models"
        value={value ? 'all' : 'some'}
        checked={isAll === value}
        onChange={() => setAll(value)}
      />
      <span>{label}</span>
    </label>
  )
  return (
    <fieldset>
      <legend>Models</legend>
      {choice('All models, also those that are added later', true)}
      {choice('Only these', false)}
      {!isAll && (
        <div className="boxed">
          <Read query={query} rows={3}>
            {({ data }) =>
              namesOf(data, allowed).map(({ id, name }) => (
                <Check
                  key={id}
                  name="model"
                  value={id}
                  label={name}
                  isOn={allowed?.includes(id) ?? false}
                />
              ))
            }
          </Read>
        </div>
      )}
    </fieldset>
  )
}

type NamedModel = { id: string; display_name: string }

/** The models that there are, and those that are allowed although they are gone. */
function namesOf(models: readonly NamedModel[], allowed: readonly string[] | null) {
  const known = models.map(({ id, display_name: name }) => ({
    id,
    name: name === id ? id : `${name} (${id})`,
  }))
  const gone = (allowed ?? []).filter((id) => !models.some((model) => model.id === id))
  return [...known, ...gone.map((id) => ({ id, name: `${id} (no longer offered)` }))]
}

export const readModels = (form: FormData): string[] | null =>
  form.get('models') === 'all' ? null : form.getAll('model').map(String)
