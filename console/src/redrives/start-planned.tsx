/** A plan that was made elsewhere, on the command line for example, and not started yet. */
import { Group, Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import { VERBS } from '../acts/act.ts'
import '../acts/acts.css'
import { PlanSample } from '../acts/plan-sample.tsx'
import type { RedriveDetail } from '../api/redrive-types.ts'
import { ActButton } from '../kit/act-button.tsx'
import { grouped } from '../time/format.ts'
import { Time } from '../time/time.tsx'
import { cancelRedrive, startRedrive } from './calls.ts'
import { useSteering } from './use-steering.ts'

export function StartPlanned({ redrive }: { readonly redrive: RedriveDetail }) {
  const { id, action, numbers, validUntilUtc, isExpired, sample } = redrive
  const { steer, isBusy } = useSteering(id)
  const [typed, setTyped] = useState('')
  const mustType = action === 'discard' && numbers.eligible > 1
  const refusal = isExpired
    ? 'Its time is over: plan it again.'
    : numbers.eligible === 0
      ? 'There is no letter in the plan.'
      : mustType && typed.replace(/\D/g, '') !== String(numbers.eligible)
        ? `Type ${numbers.eligible} first.`
        : null
  return (
    <Stack gap="sm">
      <Text size="sm">
        It was not started, and nothing was changed by it. It can be started until <Time at={validUntilUtc} />
        .
      </Text>
      {sample.length > 0 && <PlanSample plan={redrive} />}
      {mustType && (
        <TextInput
          label={`Type ${grouped(numbers.eligible)} to discard them`}
          description="So that nobody discards more than they think."
          inputMode="numeric"
          autoComplete="off"
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
      )}
      <Group gap="sm">
        <ActButton
          needs="operator"
          refusal={refusal}
          loading={isBusy}
          onClick={() => steer('It was not started', () => startRedrive(id))}
        >
          {VERBS[action]} {grouped(numbers.eligible)}
        </ActButton>
        <ActButton
          variant="default"
          needs="operator"
          onClick={() => steer('It was not dropped', () => cancelRedrive(id, ''))}
        >
          Drop the plan
        </ActButton>
      </Group>
    </Stack>
  )
}
