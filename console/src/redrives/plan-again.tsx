/** Plans what a redrive left, or what was planned and not started in time: the same letters, on the same terms. */
import { usePlan } from '../acts/plan-context.ts'
import { draftOf } from '../acts/plan-draft.ts'
import { filterOf, isOver, type Redrive } from '../api/redrive-types.ts'
import { ActButton } from '../kit/act-button.tsx'

export interface PlanAgainProps {
  readonly redrive: Redrive
  readonly size?: 'sm' | 'compact-sm'
}

export function PlanAgain({ redrive, size = 'compact-sm' }: PlanAgainProps) {
  const plan = usePlan()
  const filter = filterOf(redrive)
  return (
    <ActButton
      size={size}
      variant="default"
      needs="operator"
      refusal={filter === null ? 'It was planned for letters selected one by one: select them again.' : null}
      onClick={() => {
        if (filter === null) return
        plan({
          act: redrive.action,
          filter,
          what: 'letters, as it was planned before',
          draft: draftOf(redrive),
        })
      }}
    >
      {isOver(redrive) ? 'Plan the rest…' : 'Plan again…'}
    </ActButton>
  )
}
