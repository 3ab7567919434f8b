import { Field, numberOf } from '#parts/field.tsx'

const daySeconds = 86_400
const choices = [7, 30, 90, 365]

/** How long a new key works. What is not chosen is decided by the settings of the organization. */
export function ExpiryField() {
  return (
    <Field label="Works for">
      {(ids) => (
        <select {...ids} name="days" className="short">
          <option value="">as long as the settings of the organization say</option>
          {choices.map((days) => (
            <option key={days} value={days}>
              {days} days
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

export function readExpiry(form: FormData): number | null {
  const days = numberOf(form, 'days')
  return days === null ? null : days * daySeconds
}
