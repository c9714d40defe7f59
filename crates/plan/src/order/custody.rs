//! Finalizers that another process wrote: they count once this one has confirmed them.

use crate::draft::Draft;
use crate::own::is_claimed;
use model::ServiceUid;
use model::kubernetes::Custody;

/// Whether a public IP may be made on account of these Services: one of them is certain to carry
/// its finalizers, for nothing would say later whose address that is. Where another process may
/// have taken them off, they are written again first.
pub(crate) fn may_make_ip<'u>(
    draft: &mut Draft<'_>,
    causes: impl Iterator<Item = &'u ServiceUid> + Clone,
) -> bool {
    let inherited = |uid: &ServiceUid| draft.cases[uid].service.custody == Custody::Inherited;
    let claimed = |uid: &ServiceUid| is_claimed(draft.policy, draft.cases[uid].service);
    let certain = causes.clone().any(|uid| claimed(uid) && !inherited(uid));
    if !certain {
        let again: Vec<ServiceUid> = causes.filter(|uid| inherited(uid)).cloned().collect();
        draft.claims.unconfirmed.extend(again);
    }
    certain
}
