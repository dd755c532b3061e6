/** The number of letters, typed by whoever discards many: so that nobody discards more than they think. */
import { TextInput } from '@mantine/core'
import type { RedriveDetail } from '../api/redrive-types.ts'
import { grouped } from '../time/format.ts'

type Planned = Pick<RedriveDetail, 'action' | 'numbers'>

/** Whether the act is one that asks for it. */
const mustTypeCount = ({ action, numbers }: Planned): boolean => action === 'discard' && numbers.eligible > 1

/** Why the plan cannot be started as it is, with what was typed; null: it can. */
export function countRefusal(plan: Planned, typed: string): string | null {
  const { eligible } = plan.numbers
  if (eligible === 0) return 'The plan holds no letters.'
  // As it is shown, or without its commas.
  const isRight = [grouped(eligible), String(eligible)].includes(typed.trim())
  return mustTypeCount(plan) && !isRight ? `Type ${grouped(eligible)} first.` : null
}

export interface TypedCountProps {
  readonly plan: Planned
  readonly typed: string
  readonly type: (typed: string) => void
}

/** Nothing, where it is not asked for. */
export function TypedCount({ plan, typed, type }: TypedCountProps) {
  if (!mustTypeCount(plan)) return null
  return (
    <TextInput
      label={`Type ${grouped(plan.numbers.eligible)} to discard them`}
      description="Guards against discarding more than intended."
      inputMode="numeric"
      autoComplete="off"
      required
      value={typed}
      onChange={(event) => type(event.currentTarget.value)}
    />
  )
}
