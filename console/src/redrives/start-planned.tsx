/** A plan that was made elsewhere, on the command line for example, and not started yet. */
import { Group, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import { VERBS } from '../acts/act.ts'
import '../acts/acts.css'
import { PlanSample } from '../acts/plan-sample.tsx'
import { countRefusal, TypedCount } from '../acts/typed-count.tsx'
import type { RedriveDetail } from '../api/redrive-types.ts'
import { ActButton } from '../kit/act-button.tsx'
import { grouped } from '../time/format.ts'
import { Time, useTime } from '../time/time.tsx'
import { cancelRedrive, startRedrive } from './calls.ts'
import { PlanAgain } from './plan-again.tsx'
import { useSteering } from './use-steering.ts'

export function StartPlanned({ redrive }: { readonly redrive: RedriveDetail }) {
  const { id, action, numbers, validUntilUtc, sample } = redrive
  const { now } = useTime()
  const { steer, isBusy } = useSteering(id)
  const [typed, setTyped] = useState('')
  const isExpired = redrive.isExpired || new Date(validUntilUtc).getTime() <= now
  return (
    <Stack gap="sm">
      <Text size="sm">
        It was never started and changed nothing.{' '}
        {numbers.eligible > 0 && (
          <>
            {isExpired ? 'Expired' : 'The plan can be started until it expires,'} <Time at={validUntilUtc} />.
          </>
        )}
      </Text>
      {sample.length > 0 && <PlanSample plan={redrive} />}
      {!isExpired && <TypedCount plan={redrive} typed={typed} type={setTyped} />}
      <Group gap="sm">
        {isExpired ? (
          <PlanAgain redrive={redrive} size="sm" />
        ) : (
          <ActButton
            needs="operator"
            refusal={countRefusal(redrive, typed)}
            loading={isBusy}
            onClick={() => steer('Not started', () => startRedrive(id))}
            {...(action === 'discard' ? { color: 'red' } : {})}
          >
            {VERBS[action]} {grouped(numbers.eligible)}
          </ActButton>
        )}
        <ActButton
          variant="default"
          needs="operator"
          onClick={() => steer('Not deleted', () => cancelRedrive(id, ''))}
        >
          Delete the plan
        </ActButton>
      </Group>
    </Stack>
  )
}
