import type { LimitsEdit } from '@gatehouse/contract/limits'
import type { MonthlyBudget } from '@gatehouse/contract/monthly-budget'

import { Check, Field, numberOf } from '#parts/field.tsx'
import { toCredits, toUsd } from '#parts/money.ts'

import { limitLabels, limitNames, type Limited } from './limit-words.ts'

/** The fields of own limits; an empty one leaves the number to the tier. */
export function LimitFields({ limits }: Pick<Limited, 'limits'>) {
  return (
    <fieldset>
      <legend>Limits</legend>
      <p className="hint">At most those of the organization. Empty: as the tier has it.</p>
      <div className="two">
        {limitNames.map((name) => (
          <Field key={name} label={limitLabels[name]}>
            {(ids) => (
              <input
                {...ids}
                name={name}
                type="number"
                min={1}
                step={1}
                inputMode="numeric"
                defaultValue={limits?.[name] ?? ''}
              />
            )}
          </Field>
        ))}
      </div>
    </fieldset>
  )
}

export function readLimits(form: FormData): LimitsEdit {
  const values = limitNames.map((name) => [name, numberOf(form, name)] as const)
  if (values.every(([, value]) => value === null)) return null
  return Object.fromEntries(values)
}

/** What the calls of a month may cost, in UTC. */
export function BudgetFields({ budget }: { budget: MonthlyBudget | null }) {
  return (
    <fieldset>
      <legend>Monthly budget</legend>
      <Field label="US dollars" hint="For a calendar month, in UTC. Empty: no budget.">
        {(ids) => (
          <input
            {...ids}
            name="usd"
            type="number"
            min={0}
            step="any"
            inputMode="decimal"
            defaultValue={budget ? toUsd(budget.credits) : ''}
          />
        )}
      </Field>
      <Check
        name="hard_stop"
        label="Refuse calls that could cost more than is left"
        hint="Otherwise only alerts are written, at 80% and 100%."
        isOn={budget?.hard_stop ?? true}
      />
    </fieldset>
  )
}

/** The budget of the form; the percents of its alerts stay what they were. */
export function readBudget(form: FormData, before: MonthlyBudget | null) {
  const usd = numberOf(form, 'usd')
  if (usd === null) return null
  return {
    credits: toCredits(usd),
    hard_stop: form.get('hard_stop') === 'on',
    ...(before && { alert_percents: before.alert_percents }),
  }
}
