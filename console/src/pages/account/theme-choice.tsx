import { Field } from '#parts/field.tsx'
import { setPreferences, themes, usePreferences } from '#session/preferences.ts'

const names = { system: 'As the system', light: 'Light', dark: 'Dark' }

export function ThemeChoice() {
  const { theme } = usePreferences()
  return (
    <Field label="Theme">
      {(ids) => (
        <select
          {...ids}
          value={theme}
          onChange={({ target }) => {
            const chosen = themes.find((each) => each === target.value)
            if (chosen) setPreferences({ theme: chosen })
          }}
        >
          {themes.map((each) => (
            <option key={each} value={each}>
              {names[each]}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}
