#include "framejit/api.h"
#include "framejit/op.h"
namespace framejit {
Target host_target(){return {};}
std::shared_ptr<const Executable> compile(const Graph& g, const Target&){
  auto e=std::make_shared<Executable>(); std::unordered_map<Ref,int> slot;
  e->externs=g.externs;
  for(auto& n:g.nodes){
    if(n.op==&op_input){ Slot s{Slot::Input,(int)n.at.i[0],n.dtype,n.shape}; slot[&n]=e->slots.size(); e->slots.push_back(s);}
    else if(find_op("extern")==n.op){ ExternStep st; st.call=n.at.i[0]; for(auto a:n.in){ if(!slot.count(a)) throw GraphError("stub: arg of extern"); st.args.push_back(slot[a]);} auto& c=g.externs[st.call]; st.results.assign(c.results.size(),-1); for(auto&m:g.nodes) if(m.op==find_op("result")&&m.in[0]==&n){ int k=m.at.i[0]; if(c.mutates&&k==0) slot[&m]=slot[n.in[0]]; else { slot[&m]=e->slots.size(); e->slots.push_back({Slot::Result,-1,m.dtype,m.shape}); } st.results[k]=slot[&m];} e->steps.push_back(st);} }
  for(auto&o:g.outputs){ if(!slot.count(o.value)||o.into>=0||!o.as_is) throw GraphError("stub: output"); e->outputs.push_back(slot[o.value]); }
  return e; }
int32_t launch(const KernelStep&, void* const*, ParallelFor, int){return 0;}
}
