/** What can be done with a redrive: pause, resume, another rate, cancel; what is left of an ended one can be planned again. */
import { Group } from '@mantine/core'
import { useState } from 'react'
import { usePlan } from '../acts/plan-context.ts'
import { draftOf } from '../acts/plan-draft.ts'
import { filterOf, isActive, isOver, type Redrive } from '../api/redrive-types.ts'
import { ActButton } from '../kit/act-button.tsx'
import { cancelRedrive, pauseRedrive, resumeRedrive, setRedriveRate } from './calls.ts'
import { CancelDialog } from './cancel-dialog.tsx'
import { RateDialog } from './rate-dialog.tsx'
import { useSteering } from './use-steering.ts'

export function RedriveButtons({ redrive }: { readonly redrive: Redrive }) {
  return isActive(redrive) ? <Steer redrive={redrive} /> : <PlanRest redrive={redrive} />
}

function Steer({ redrive }: { readonly redrive: Redrive }) {
  const { id, state } = redrive
  const { steer, isBusy } = useSteering(id)
  const [asked, setAsked] = useState<'rate' | 'cancel' | null>(null)
  const close = () => setAsked(null)
  return (
    <Group gap="xs">
      {state === 'paused' ? (
        <ActButton
          size="compact-sm"
          needs="operator"
          loading={isBusy}
          onClick={() => steer('It was not resumed', () => resumeRedrive(id))}
        >
          Resume
        </ActButton>
      ) : (
        <ActButton
          size="compact-sm"
          variant="default"
          needs="operator"
          loading={isBusy}
          onClick={() => steer('It was not paused', () => pauseRedrive(id))}
        >
          Pause
        </ActButton>
      )}
      <ActButton size="compact-sm" variant="default" needs="operator" onClick={() => setAsked('rate')}>
        Change rate…
      </ActButton>
      <ActButton size="compact-sm" variant="default" needs="operator" onClick={() => setAsked('cancel')}>
        Cancel…
      </ActButton>
      <RateDialog
        redrive={asked === 'rate' ? redrive : null}
        close={close}
        set={(rate) => steer('The rate was not changed', () => setRedriveRate(id, rate))}
      />
      <CancelDialog
        redrive={asked === 'cancel' ? redrive : null}
        close={close}
        cancel={(reason) => steer('It was not cancelled', () => cancelRedrive(id, reason))}
      />
    </Group>
  )
}

function PlanRest({ redrive }: { readonly redrive: Redrive }) {
  const plan = usePlan()
  const { action, counts } = redrive
  const filter = filterOf(redrive)
  if (!isOver(redrive) || counts.remaining + counts.failed + counts.skipped === 0) return null
  return (
    <Group gap="xs">
      <ActButton
        size="compact-sm"
        variant="default"
        needs="operator"
        refusal={
          filter === null
            ? 'It was planned for letters that were chosen one by one: choose them again.'
            : null
        }
        onClick={() => {
          if (filter !== null)
            plan({ act: action, filter, what: 'letters, as it was planned before', draft: draftOf(redrive) })
        }}
      >
        Plan the rest…
      </ActButton>
    </Group>
  )
}
