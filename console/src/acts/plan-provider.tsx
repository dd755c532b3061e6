/** Lets every screen open a plan; the plan itself is loaded once the page is there. */
import { lazy, type ReactNode, Suspense, useCallback, useMemo, useState } from 'react'
import { PlanContext, type PlanRequest } from './plan-context.ts'

const Plan = lazy(async () => ({ default: (await import('./plan.tsx')).Plan }))

/** Gives `usePlan` to everything below it. */
export function PlanProvider({ children }: { readonly children: ReactNode }) {
  const [request, setRequest] = useState<PlanRequest | null>(null)
  const [started, setStarted] = useState<string | null>(null)
  const isOpen = request !== null
  const planning = useMemo(() => ({ open: setRequest, isOpen, started }), [isOpen, started])
  const close = useCallback(() => setRequest(null), [])
  return (
    <PlanContext value={planning}>
      {children}
      <Suspense>
        <Plan request={request} close={close} started={setStarted} />
      </Suspense>
    </PlanContext>
  )
}
